// Dropout of a training step, from numbers that need not be stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace st_paragram {

inline uint64_t mixed(uint64_t x) {  // one step of the generator SplitMix64 (Steele, Lea and Flood 2014)
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Dropout on the components of tokens: each is dropped with `probability`, rounded to a multiple of 2^-16, or else
// multiplied by `scale`. The mask of a token is a function of the seed, the step and the token's place in the batch, and
// of nothing else: not of threads, instructions or earlier steps. Only its key is stored: see mask in loops_body.h.
class Dropout {
public:
    Dropout(double probability, uint64_t seed) : seed_(mixed(seed)) {
        if (!(probability >= 0 && probability < 1)) throw std::invalid_argument("dropout is not in [0, 1)");
        dropped_ = std::min(std::lround(probability * 65536), 65535l);
    }

    bool on() const { return dropped_ > 0; }
    float scale() const { return static_cast<float>(65536.0 / (65536 - dropped_)); }
    // A component is kept if its random number, 16 bits as the upper ones of an int32_t, is not below this.
    int32_t limit() const { return static_cast<int32_t>((dropped_ - 32768) * 65536); }

    void keys(int64_t step, int64_t count, std::vector<uint64_t>& out) const {
        const uint64_t first = mixed(seed_ + static_cast<uint64_t>(step));
        out.resize(count);
        for (int64_t i = 0; i < count; ++i) out[i] = mixed(first + static_cast<uint64_t>(i));
    }

private:
    uint64_t seed_;
    int64_t dropped_;  // of 65536
};

}  // namespace st_paragram
