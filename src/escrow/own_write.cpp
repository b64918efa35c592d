#include "escrow/own_write.h"

namespace interlock {

EscrowWrite* escrow_write = nullptr;

} // namespace interlock
