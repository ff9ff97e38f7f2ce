#include "threads.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
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

    void work(int thread) {
        for (;;) {
            const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
            if (begin >= count) return;
            body(context, begin, begin + grain < count ? begin + grain : count, thread);
        }
    }
};

class Pool {
public:
    explicit Pool(int workers) {
        for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { serve(i + 1); });
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
            round_.fetch_add(1);
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

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
    }

private:
    void serve(int thread) {
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
    std::atomic<int> busy_{0}, sleepers_{0};
    bool stopping_ = false;
    Loop loop_;
};

// The pool and its lock, made anew in a forked child: there the threads are gone, and the lock may never be opened.
struct Shared {
    const int process = getpid();
    std::mutex one_loop_at_a_time;
    std::unique_ptr<Pool> pool;
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

void parallel_for(int64_t count, int64_t grain, int threads, Body body, void* context) {
    if (count <= 0) return;
    if (threads <= 1 || count <= grain) {
        body(context, 0, count, 0);
        return;
    }
    Shared& shared = shared_of_this_process();
    std::lock_guard<std::mutex> lock(shared.one_loop_at_a_time);
    if (!shared.pool || shared.pool->workers() != threads - 1) {
        shared.pool.reset();
        shared.pool = std::make_unique<Pool>(threads - 1);
    }
    shared.pool->run(count, grain, body, context);
}

}  // namespace st_paragram
