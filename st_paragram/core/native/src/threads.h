// A pool of worker threads for short parallel loops, without OpenMP: torch has its own OpenMP runtime, and two runtimes
// in one process interfere with each other.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <type_traits>

namespace st_paragram {

// st_paragram.errors.SettingsError: the caller's settings, files or machine do not allow the work.
struct SettingsError : std::runtime_error { using std::runtime_error::runtime_error; };

using Body = void (*)(void* context, int64_t begin, int64_t end, int thread);

// Call body(context, begin, end, thread) for pieces of at most `grain` items that cover 0 .. count - 1, on `threads`
// threads (including the caller's, numbered 0 .. threads - 1). Returns when all pieces are done. If bodies throw, the
// first exception is rethrown here once all threads have stopped; pieces not begun by then are skipped. Throws
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

// Start the threads of later loops, so that these loops cannot fail to start them. Throws SettingsError.
void start_threads(int threads);

// The number of this process, which a forked one does not share.
int this_process();

// The number of threads to use, 1 to kMostThreads, for a number requested by the caller.
constexpr int kMostThreads = 256;
constexpr int usable_threads(int threads) { return threads < 1 ? 1 : threads < kMostThreads ? threads : kMostThreads; }

}  // namespace st_paragram
