// SipHash-2-4: a hash of short messages that cannot be predicted without the key.
//
// Source: J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012,
// https://eprint.iacr.org/2012/351. test/model/server/siphash.cpp compares it with the authors'
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace interlock::inline server {

struct SipKey {
    uint64_t words[2];
};

// The message consists of words of eight bytes, lowest byte first, and of bytes after them.
class SipHash {
public:
    explicit SipHash(const SipKey& key)
        : v0_(key.words[0] ^ 0x736f6d6570736575),
          v1_(key.words[1] ^ 0x646f72616e646f6d),
          v2_(key.words[0] ^ 0x6c7967656e657261),
          v3_(key.words[1] ^ 0x7465646279746573) {}

    void add(uint64_t word) {
        v3_ ^= word;
        round();
        round();
        v0_ ^= word;
        length_ += sizeof(word);
    }

    uint64_t finish(const char* bytes, size_t size) {
        uint64_t last = static_cast<uint64_t>(length_ + size) << 56;
        for (; size >= sizeof(uint64_t); bytes += sizeof(uint64_t), size -= sizeof(uint64_t))
            add(read_word(bytes));
        for (size_t i = 0; i < size; i++)
            last |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
        add(last);
        v2_ ^= 0xff;
        for (int i = 0; i < 4; i++)
            round();
        return v0_ ^ v1_ ^ v2_ ^ v3_;
    }

private:
    static uint64_t rotate(uint64_t word, int by) { return word << by | word >> (64 - by); }

    static uint64_t read_word(const char* bytes) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(word) : word;
    }

    void round() {
        v0_ += v1_;
        v2_ += v3_;
        v1_ = rotate(v1_, 13) ^ v0_;
        v3_ = rotate(v3_, 16) ^ v2_;
        v0_ = rotate(v0_, 32);
        v2_ += v1_;
        v0_ += v3_;
        v1_ = rotate(v1_, 17) ^ v2_;
        v3_ = rotate(v3_, 21) ^ v0_;
        v2_ = rotate(v2_, 32);
    }

    uint64_t v0_, v1_, v2_, v3_;
    size_t length_ = 0;
};

} // namespace interlock::inline server
