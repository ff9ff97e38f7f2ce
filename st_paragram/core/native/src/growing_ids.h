// Ids of texts on their way, in an array that grows.
#pragma once

#include "word_table.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace st_paragram {

// Ids, growing; room for kAtOnce more is left behind the last one.
struct Ids {
    std::vector<int32_t> numbers;
    int64_t size = 0;

    int32_t* room_for(int64_t more) {
        if (size + more + kAtOnce > static_cast<int64_t>(numbers.size())) {
            numbers.resize(static_cast<size_t>(2 * (size + more) + 256));
        }
        return numbers.data() + size;
    }

    void push(int32_t id) {
        *room_for(1) = id;
        ++size;
    }

    // kAtOnce numbers must be readable from `ids`, however small the count.
    void append(const int32_t* ids, int64_t count) {
        int32_t* to = room_for(count);
        for (int64_t k = 0; k < count; k += kAtOnce) std::memcpy(to + k, ids + k, 4 * kAtOnce);
        size += count;
    }

    void append_without(int32_t unknown, const int32_t* ids, int64_t count) {
        int32_t* to = room_for(count);
        for (int64_t k = 0; k < count; ++k) {
            *to = ids[k];
            to += ids[k] != unknown;
        }
        size = to - numbers.data();
    }
};

}  // namespace st_paragram
