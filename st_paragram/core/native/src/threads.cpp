#include "threads.h"

#include "errors.h"

#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

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

// Loops of a training step follow each other within microseconds: waiting threads look again for about as long before
// they sleep, so that waking them costs nothing there and an idle pool costs nothing either.
constexpr int kLooks = 2000;

struct Loop {
    int64_t count = 0, grain = 1;
    Body body = nullptr;
    void* context = nullptr;
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    std::exception_ptr error;  // of the thread that was the first to set `failed`

    void work(int thread) noexcept {
        try {
            for (;;) {
                const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
                if (begin >= count) return;
                body(context, begin, begin + grain < count ? begin + grain : count, thread);
            }
        } catch (...) {
            next.store(count, std::memory_order_relaxed);
            if (!failed.exchange(true)) error = std::current_exception();
        }
    }

    void rethrow() {
        if (!failed.load()) return;
        failed.store(false);
        std::rethrow_exception(std::exchange(error, nullptr));
    }
};

class Pool {
public:
    explicit Pool(int workers) {
        try {
            threads_.reserve(static_cast<size_t>(workers));
            for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { serve(i + 1); });
            while (ready_.load() < workers) std::this_thread::yield();
            if (unfit_.load() > 0) throw std::system_error(std::make_error_code(std::errc::not_enough_memory));
        } catch (const std::exception& error) {
            const int64_t started = static_cast<int64_t>(threads_.size()) - unfit_.load();
            stop();  // before what they wait for is taken down
            throw SettingsError("only " + std::to_string(started + 1) + " of " + std::to_string(workers + 1) +
                                " threads could be started (" + error.what() + "); set OMP_NUM_THREADS to a smaller " +
                                "number, or allow this process more memory or threads (ulimit -v, ulimit -u)");
        }
    }

    ~Pool() { stop(); }

    int workers() const { return static_cast<int>(threads_.size()); }

    void run(int64_t count, int64_t grain, Body body, void* context) {
        loop_.count = count;
        loop_.grain = grain;
        loop_.body = body;
        loop_.context = context;
        loop_.next.store(0, std::memory_order_relaxed);
        busy_.store(workers(), std::memory_order_relaxed);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            round_.fetch_add(1, std::memory_order_release);
        }
        if (sleepers_.load() > 0) wake_.notify_all();
        loop_.work(0);
        for (int looks = 0; busy_.load(std::memory_order_acquire) > 0; ++looks) {
            if (looks < kLooks) {
                RELAX();
            } else {
                std::this_thread::yield();
            }
        }
        loop_.rethrow();
    }

private:
    void stop() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
            round_.fetch_add(1);
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

    void serve(int thread) {
        if (!ready_to_throw()) unfit_.fetch_add(1);
        ready_.fetch_add(1);
        uint64_t seen = 0;
        for (;;) {
            wait_for_round_after(seen);
            ++seen;
            if (stopping_) return;
            loop_.work(thread);
            busy_.fetch_sub(1, std::memory_order_release);
        }
    }

    void wait_for_round_after(uint64_t seen) {
        for (int looks = 0; looks < kLooks; ++looks) {
            if (round_.load(std::memory_order_acquire) != seen) return;
            RELAX();
        }
        std::unique_lock<std::mutex> lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
        sleepers_.fetch_sub(1);
    }

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<uint64_t> round_{0};
    std::atomic<int> busy_{0}, sleepers_{0}, ready_{0}, unfit_{0};
    bool stopping_ = false;
    Loop loop_;
};

// The pool and its lock, made anew in a forked child: there the threads are gone, and the lock may never be opened.
struct Shared {
    const int process = getpid();
    std::mutex one_loop_at_a_time;
    std::unique_ptr<Pool> pool;

    Pool& pool_of(int threads) {
        if (!pool || pool->workers() != threads - 1) {
            pool.reset();
            pool = std::make_unique<Pool>(threads - 1);
        }
        return *pool;
    }
};

std::atomic<Shared*> g_shared{new Shared};

Shared& shared_of_this_process() {
    Shared* shared = g_shared.load();
    if (shared->process != getpid()) {
        Shared* own = new Shared;  // the parent's is left alone: closing it would wait for threads that are not here
        if (g_shared.compare_exchange_strong(shared, own)) return *own;
        delete own;  // another thread of the child was quicker
    }
    return *g_shared.load();
}

}  // namespace

bool ready_to_throw() noexcept {
    // A thread's first exception allocates its share of the C++ runtime's thread-local data, and the C library ends the
    // process where that fails.
    void* volatile room = std::malloc(4096);
    if (!room) return false;
    std::free(room);
    return std::uncaught_exceptions() == 0;
}

void start_threads(int threads) {
    threads = usable_threads(threads);
    if (threads == 1) return;
    Shared& shared = shared_of_this_process();
    std::lock_guard<std::mutex> lock(shared.one_loop_at_a_time);
    shared.pool_of(threads);
}

void try_threads(int threads) { const Pool pool(usable_threads(threads)); }

void parallel_for(int64_t count, int64_t grain, int threads, Body body, void* context) {
    if (count <= 0) return;
    threads = usable_threads(threads);
    if (threads == 1 || count <= grain) {
        body(context, 0, count, 0);
        return;
    }
    Shared& shared = shared_of_this_process();
    std::lock_guard<std::mutex> lock(shared.one_loop_at_a_time);
    shared.pool_of(threads).run(count, grain, body, context);
}

}  // namespace st_paragram
