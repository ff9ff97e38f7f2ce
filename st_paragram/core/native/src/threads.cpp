#include "threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#ifdef _WIN32
#include <process.h>
#define getpid _getpid
#else
#include <unistd.h>
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define RELAX() _mm_pause()
#else
#define RELAX() std::this_thread::yield()
#endif

namespace st_paragram {
namespace {

// Loops of a training step follow each other within microseconds. Waiting threads spin for about as long before they
// sleep, so that neither waking them nor an idle pool costs anything.
constexpr int kLooks = 2000;

// Workers start when a loop needs them, and stay alive; a loop with fewer threads uses the first of them.
class Pool {
public:
    const int process = this_process();
    std::mutex one_loop_at_a_time;

    void grow(int threads) {
        while (static_cast<int>(workers_.size()) < threads - 1) {
            Worker& worker = workers_.emplace_back();
            try {
                const int number = static_cast<int>(workers_.size());
                std::thread([this, &worker, number] { serve(worker, number); }).detach();
            } catch (const std::system_error& error) {
                workers_.pop_back();
                throw SettingsError("only " + std::to_string(workers_.size() + 1) + " of " + std::to_string(threads) +
                                    " threads could be started (" + error.what() + "); ask for fewer, by num_threads " +
                                    "or OMP_NUM_THREADS");
            }
        }
    }

    void run(int64_t count, int64_t grain, int threads, Body body, void* context) {
        loop_ = {count, grain, body, context};
        next_.store(0, std::memory_order_relaxed);
        busy_.store(threads - 1, std::memory_order_relaxed);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            round_.store((round_ / kRound + 1) * kRound + static_cast<uint64_t>(threads), std::memory_order_release);
        }
        for (size_t i = 0; i + 1 < static_cast<size_t>(threads); ++i) {
            if (workers_[i].asleep) workers_[i].wake.notify_one();
        }
        work(0);
        for (int looks = 0; busy_.load(std::memory_order_acquire) > 0; ++looks) {
            if (looks < kLooks) RELAX();
            else std::this_thread::yield();
        }
        if (failed_.exchange(false)) std::rethrow_exception(std::exchange(error_, nullptr));
    }

private:
    struct Worker {
        std::condition_variable wake;
        std::atomic<bool> asleep{false};
    };
    struct Loop {
        int64_t count, grain;
        Body body;
        void* context;
    };

    void work(int thread) noexcept {
        try {
            for (;;) {
                const int64_t begin = next_.fetch_add(loop_.grain, std::memory_order_relaxed);
                if (begin >= loop_.count) return;
                loop_.body(loop_.context, begin, std::min(begin + loop_.grain, loop_.count), thread);
            }
        } catch (...) {
            next_.store(loop_.count, std::memory_order_relaxed);
            if (!failed_.exchange(true)) error_ = std::current_exception();
        }
    }

    void serve(Worker& worker, int number) {
        uint64_t seen = 0;
        const auto called = [&] {  // a round waits for its workers, so no worker misses one
            const uint64_t round = round_.load(std::memory_order_acquire);
            if (round == seen || static_cast<int>(round % kRound) <= number) return false;
            seen = round;
            return true;
        };
        for (;;) {
            int looks = 0;
            for (; looks < kLooks && !called(); ++looks) RELAX();
            if (looks == kLooks) {
                std::unique_lock<std::mutex> lock(mutex_);
                worker.asleep = true;
                worker.wake.wait(lock, called);
                worker.asleep = false;
            }
            work(number);
            busy_.fetch_sub(1, std::memory_order_release);
        }
    }

    static constexpr uint64_t kRound = 1 << 16;  // round_: the round's number times kRound, plus its number of threads
    std::deque<Worker> workers_;
    std::mutex mutex_;
    std::atomic<uint64_t> round_{0};
    std::atomic<int> busy_{0};
    Loop loop_{};
    std::atomic<int64_t> next_{0};
    std::atomic<bool> failed_{false};
    std::exception_ptr error_;  // from the first thread that set failed_
};

std::atomic<Pool*> g_pool{new Pool};

// In a forked child the threads are gone, and locks may never be released, so the child creates a new pool and does not
// touch the parent's.
Pool& pool_of_this_process() {
    Pool* pool = g_pool.load();
    if (pool->process == this_process()) return *pool;
    Pool* own = new Pool;
    if (g_pool.compare_exchange_strong(pool, own)) return *own;
    delete own;  // another thread of the child was faster
    return *pool;
}

}  // namespace

int this_process() { return getpid(); }

void start_threads(int threads) {
    Pool& pool = pool_of_this_process();
    std::lock_guard<std::mutex> lock(pool.one_loop_at_a_time);
    pool.grow(usable_threads(threads));
}

void parallel_for(int64_t count, int64_t grain, int threads, Body body, void* context) {
    if (count <= 0) return;
    threads = usable_threads(threads);
    if (threads == 1 || count <= grain) {
        body(context, 0, count, 0);
        return;
    }
    Pool& pool = pool_of_this_process();
    std::lock_guard<std::mutex> lock(pool.one_loop_at_a_time);
    pool.grow(threads);
    pool.run(count, grain, threads, body, context);
}

}  // namespace st_paragram
