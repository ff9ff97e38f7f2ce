// A pool of worker threads for short parallel loops, without OpenMP: torch brings an OpenMP runtime of its own, and two
// of them in one process get in each other's way.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace st_paragram {

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

// Start threads of one's own and end them again: so many can be had beside those that run. Throws SettingsError.
void try_threads(int threads);

// How many threads are used of a number that a caller gave: 1 to kMostThreads.
constexpr int kMostThreads = 1024;
constexpr int usable_threads(int threads) { return threads < 1 ? 1 : threads < kMostThreads ? threads : kMostThreads; }

// Set up what this thread needs to throw an exception when memory has run out; false if it has run out already.
bool ready_to_throw() noexcept;

}  // namespace st_paragram
