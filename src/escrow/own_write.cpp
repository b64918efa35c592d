#include "escrow/own_write.h"

namespace interlock::escrow {

EscrowWrite* escrow_write = nullptr;

} // namespace interlock::escrow
