// A pool of worker threads for short parallel loops, without OpenMP: torch brings an OpenMP runtime of its own, and two
// of them in one process get in each other's way.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace st_paragram {

// st_paragram.errors.SettingsError: what the caller's settings, files or machine do not allow for.
struct SettingsError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Body = void (*)(void* context, int64_t begin, int64_t end, int thread);

// Call body(context, begin, end, thread) for pieces of at most `grain` items that cover 0 .. count - 1, on `threads`
// threads (the caller's among them, numbered 0 .. threads - 1). Returns when all is done. What a body throws is thrown
// here once all threads have stopped, the first of several; pieces not begun by then are left out. Throws
// SettingsError if the threads cannot be started. Loops started from several threads at once run one after another.
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

// Start the threads of later loops, so that these do not fail for want of them. Throws SettingsError.
void start_threads(int threads);

// The number of this process, which a forked one does not share.
int this_process();

// How many threads are used of a number that a caller gave: 1 to kMostThreads.
constexpr int kMostThreads = 256;
constexpr int usable_threads(int threads) { return threads < 1 ? 1 : threads < kMostThreads ? threads : kMostThreads; }

}  // namespace st_paragram
