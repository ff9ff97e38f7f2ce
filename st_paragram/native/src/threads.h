// A pool of worker threads for short parallel loops, without OpenMP: torch brings an OpenMP runtime of its own, and two
// of them in one process get in each other's way.
#pragma once

#include <atomic>
#include <cstdint>

namespace st_paragram {

using Body = void (*)(void* context, int64_t begin, int64_t end, int thread);

// Call body(context, begin, end, thread) for pieces of at most `grain` items that cover 0 .. count - 1, on `threads`
// threads (the caller's among them, numbered 0 .. threads - 1). Returns when all is done. The body must not throw.
// Loops started from several threads at once run one after another.
void parallel_for(int64_t count, int64_t grain, int threads, Body body, void* context);

template <class Function>
void parallel_for(int64_t count, int64_t grain, int threads, Function&& function) {
    parallel_for(
        count, grain, threads,
        [](void* context, int64_t begin, int64_t end, int thread) {
            (*static_cast<std::remove_reference_t<Function>*>(context))(begin, end, thread);
        },
        &function);
}

}  // namespace st_paragram
