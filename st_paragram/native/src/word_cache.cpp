// Texts to sentencepiece ids, word by word: every word is encoded once, by sentencepiece. Why that is exact, and for
// which models, says st_paragram/tokenizers/word_cache.py.
#include "bindings.h"
#include "growing_ids.h"
#include "threads.h"
#include "word_table.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#ifdef _WIN32
#include <process.h>
#define getpid _getpid
#else
#include <unistd.h>
#endif

namespace st_paragram {
namespace {

constexpr int64_t kGrain = 64;               // texts given to a thread at a time
constexpr int64_t kLongestText = 1 << 15;    // bytes; longer texts are encoded whole
constexpr int kGroup = 32;                   // words looked up together, to wait for memory once
constexpr size_t kMissingAtOnce = 1 << 20;   // words that a thread collects in one round

// The words of a vocabulary. Lookups share the lock and run without the GIL; words are added under both, so that a
// forked process, which had the GIL, finds the table whole (and makes a lock of its own).
class WordCache {
public:
    WordCache(int32_t unknown, uint32_t most_cost, int64_t limit)
        : unknown(unknown), most_cost(most_cost), table(checked(limit)), lock_(std::make_unique<std::shared_mutex>()) {}

    std::shared_mutex& lock() {
        if (process_ != getpid()) {
            (void)lock_.release();  // other threads of the parent may hold it for ever
            lock_ = std::make_unique<std::shared_mutex>();
            process_ = getpid();
        }
        return *lock_;
    }

    const int32_t unknown;
    const uint32_t most_cost;
    WordTable table;

private:
    static int64_t checked(int64_t limit) {
        if (limit < 0 || limit > kMostBytes) throw std::invalid_argument("limit is not in 0 .. 2^34 bytes");
        return limit;
    }

    std::unique_ptr<std::shared_mutex> lock_;
    int process_ = getpid();
};

enum class State : uint8_t { kMissing, kDone, kDirect };

struct Text {
    const char* bytes;
    int64_t length;
    int64_t start, count;  // its ids, at results_[thread]
    int thread;
    State state;
    bool cut;
};

// One batch of texts on its way: looked up, completed by what sentencepiece says of missing words, put together.
class Batch {
public:
    Batch(std::shared_ptr<WordCache> cache, py::list texts, int64_t max_length, int threads)
        : cache_(std::move(cache)),
          max_length_(max_length < 0 ? INT64_MAX : max_length),
          threads_(usable_threads(threads)) {
        texts_.reserve(texts.size());
        held_.reserve(texts.size());
        for (size_t i = 0; i < texts.size(); ++i) add_text(PyList_GET_ITEM(texts.ptr(), static_cast<Py_ssize_t>(i)));
        results_.resize(static_cast<size_t>(threads_));
        missing_.resize(static_cast<size_t>(threads_));
        look_up();
    }

    // The words that are not in the table, each once; they are what `learn` expects.
    py::list missing() const {
        const auto alone = callers_.enter();
        py::list result(words_.size());
        for (size_t i = 0; i < words_.size(); ++i) result[i] = py::str(words_[i].bytes, words_[i].length);
        return result;
    }

    bool complete() const { return left_ == 0; }

    // Add the missing words and look the texts up again that lacked them.
    void learn(const Array<int32_t>& ids, const Array<int64_t>& offsets, const Array<uint32_t>& costs) {
        const auto alone = callers_.enter();
        const auto count = static_cast<int64_t>(words_.size());
        check_offsets(ids, offsets, count);
        check_shape(costs, "costs", {count});
        {
            const std::unique_lock<std::shared_mutex> lock(cache_->lock());
            for (int64_t i = 0; i < count; ++i) {
                if (!cache_->table.find(words_[i]).at) add(words_[i], ids, offsets, i, costs.data()[i]);
            }
        }
        look_up();
    }

    // Numbers of the texts that sentencepiece must encode whole; they are what `finish` expects.
    Array<int64_t> direct() const {
        const auto alone = callers_.enter();
        std::vector<int64_t> numbers;
        for (size_t i = 0; i < texts_.size(); ++i) {
            if (texts_[i].state != State::kDone) numbers.push_back(static_cast<int64_t>(i));
        }
        return Array<int64_t>(static_cast<py::ssize_t>(numbers.size()), numbers.data());
    }

    py::tuple finish(const Array<int32_t>& ids, const Array<int64_t>& offsets) {
        const auto alone = callers_.enter();
        check_offsets(ids, offsets, count_direct());
        int64_t number = 0;
        for (Text& text : texts_) {
            if (text.state == State::kDone) continue;
            const int64_t begin = offsets.data()[number], pieces = offsets.data()[number + 1] - begin;
            ++number;
            text.thread = 0;
            text.start = results_[0].size;
            results_[0].append_without(cache_->unknown, ids.data() + begin, pieces < max_length_ ? pieces : max_length_);
            close(text, pieces);
        }
        return together();
    }

private:
    // The UTF-8 of a text: what an ASCII string has, or a copy for as long as this batch lives. (PyUnicode_AsUTF8 would
    // leave the copy in the caller's string.)
    void add_text(PyObject* text) {
        if (!PyUnicode_Check(text)) throw py::type_error("a text is no string");
        py::object holder;
        if (PyUnicode_IS_ASCII(text)) {
            holder = py::reinterpret_borrow<py::object>(text);
        } else {
            holder = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(text));
            if (!holder) throw py::error_already_set();
        }
        const bool ascii = holder.ptr() == text;
        const char* bytes = ascii ? reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text))
                                  : PyBytes_AS_STRING(holder.ptr());
        const int64_t length = ascii ? PyUnicode_GET_LENGTH(text) : PyBytes_GET_SIZE(holder.ptr());
        texts_.push_back({bytes, length, 0, 0, 0, length > kLongestText ? State::kDirect : State::kMissing, false});
        held_.push_back(std::move(holder));
    }

    static void check_offsets(const Array<int32_t>& ids, const Array<int64_t>& offsets, int64_t count) {
        check_shape(ids, "ids", {-1});
        check_shape(offsets, "offsets", {count + 1});
        const int64_t* o = offsets.data();
        bool good = o[0] == 0 && o[count] == ids.shape(0);
        for (int64_t i = 0; good && i < count; ++i) good = o[i] <= o[i + 1];
        if (!good) throw std::invalid_argument("offsets do not grow from 0 to the number of ids");
    }

    int64_t count_direct() const {
        int64_t count = 0;
        for (const Text& text : texts_) count += text.state != State::kDone;
        return count;
    }

    void add(const Word& word, const Array<int32_t>& ids, const Array<int64_t>& offsets, int64_t i, uint32_t cost) {
        const int32_t* first = ids.data() + offsets.data()[i];
        int64_t count = offsets.data()[i + 1] - offsets.data()[i];
        if (count > kMostPieces) {
            count = 0;
            cost = kNeverCached;
        }
        bool has_unknown = false;
        for (int64_t k = 0; k < count; ++k) has_unknown |= first[k] == cache_->unknown;
        cache_->table.add(word, first, static_cast<uint32_t>(count), has_unknown, cost);
    }

    void look_up() {
        std::shared_mutex& cache_lock = cache_->lock();
        const py::gil_scoped_release release;
        {
            const std::shared_lock<std::shared_mutex> lock(cache_lock);
            parallel_for(static_cast<int64_t>(texts_.size()), kGrain, threads_,
                         [&](int64_t begin, int64_t end, int thread) {
                             for (int64_t i = begin; i < end; ++i) {
                                 if (texts_[i].state == State::kMissing) look_up(texts_[i], thread);
                             }
                         });
        }
        collect_missing();
    }

    void look_up(Text& text, int thread) {
        Ids& ids = results_[thread];
        std::vector<Word>& missing = missing_[thread];
        const WordTable& table = cache_->table;
        const size_t missing_before = missing.size();
        text.thread = thread;
        text.start = ids.size;
        int64_t pieces = 0;
        uint64_t cost = 0;
        bool complete = true, direct = false;
        const char *at = text.bytes, *const end = at + text.length;
        Word group[kGroup];
        while (!direct) {
            int count = 0;
            for (; count < kGroup; ++count) {
                while (at < end && *at == ' ') ++at;
                if (at == end) break;
                group[count] = read_word(at, end);
                at += group[count].length;
                direct |= group[count].length > kLongestWord;
                table.prefetch_slot(group[count]);
            }
            if (!count) break;
            for (int k = 0; k < count; ++k) table.prefetch_record(group[k]);
            for (int k = 0; k < count && !direct; ++k) {
                const Record record = table.find(group[k]);
                if (!record.at) {
                    complete = false;
                    if (missing.size() < kMissingAtOnce) missing.push_back(group[k]);
                    continue;
                }
                cost += record.cost();
                direct = cost > cache_->most_cost;
                if (complete) append(ids, record, max_length_ - pieces);
                pieces += record.pieces();
            }
        }
        if (direct || !complete) ids.size = text.start;
        if (direct) missing.resize(missing_before);
        if (direct) {
            text.state = State::kDirect;
        } else if (complete) {
            close(text, pieces);
        }
    }

    void append(Ids& ids, const Record& record, int64_t room) const {
        const int64_t count = record.pieces() < room ? record.pieces() : room;
        if (count <= 0) return;
        if (record.has_unknown()) {
            ids.append_without(cache_->unknown, record.ids(), count);
        } else {
            ids.append(record.ids(), count);
        }
    }

    // The last thing to do for a text: a text without a known piece is the unknown id.
    void close(Text& text, int64_t pieces) {
        Ids& ids = results_[text.thread];
        if (ids.size == text.start) *ids.room_for(1) = cache_->unknown, ++ids.size;
        text.count = ids.size - text.start;
        text.cut = pieces > max_length_;
        text.state = State::kDone;
    }

    // Make the threads' missing words distinct, and see how many texts are left.
    void collect_missing() {
        left_ = count_direct();
        words_.clear();
        size_t count = 0;
        for (const std::vector<Word>& words : missing_) count += words.size();
        if (!count) return;
        size_t size = 16;
        while (size < 2 * count) size *= 2;
        std::vector<uint32_t> slots(size, 0);  // a word's number plus 1
        for (std::vector<Word>& words : missing_) {
            for (const Word& word : words) {
                size_t i = word.hash & (size - 1);
                while (slots[i] && !same(words_[slots[i] - 1], word)) i = (i + 1) & (size - 1);
                if (slots[i]) continue;
                words_.push_back(word);
                slots[i] = static_cast<uint32_t>(words_.size());
            }
            words.clear();
        }
    }

    static bool same(const Word& a, const Word& b) {
        return a.hash == b.hash && a.length == b.length && !std::memcmp(a.bytes, b.bytes, static_cast<size_t>(a.length));
    }

    py::tuple together() const {
        const auto count = static_cast<int64_t>(texts_.size());
        Array<int64_t> offsets(count + 1);
        int64_t *offset = offsets.mutable_data(), cut = 0;
        offset[0] = 0;
        for (int64_t i = 0; i < count; ++i) {
            offset[i + 1] = offset[i] + texts_[i].count;
            cut += texts_[i].cut;
        }
        Array<int64_t> ids(offset[count]);
        int64_t* result = ids.mutable_data();
        {
            const py::gil_scoped_release release;
            parallel_for(count, 16 * kGrain, threads_, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) {
                    const int32_t* from = results_[texts_[i].thread].numbers.data() + texts_[i].start;
                    for (int64_t k = 0; k < texts_[i].count; ++k) result[offset[i] + k] = from[k];
                }
            });
        }
        return py::make_tuple(ids, offsets, cut);
    }

    mutable OneAtATime callers_;
    const std::shared_ptr<WordCache> cache_;
    const int64_t max_length_;
    const int threads_;
    std::vector<Text> texts_;
    std::vector<py::object> held_;            // what the texts' bytes belong to
    std::vector<Ids> results_;                // of each thread
    std::vector<std::vector<Word>> missing_;  // of each thread
    std::vector<Word> words_;
    int64_t left_ = 0;
};

}  // namespace

void bind_word_cache(py::module_& module) {
    using namespace py::literals;
    py::class_<WordCache, std::shared_ptr<WordCache>>(module, "WordCache", "Pieces of words.")
        .def(py::init<int32_t, uint32_t, int64_t>(), "unknown"_a, "most_cost"_a, "limit"_a,
             "unknown: id to drop; most_cost: texts whose words cost more in all are encoded whole; limit: bytes.")
        .def("__len__", [](const WordCache& cache) { return cache.table.words(); })
        .def_property_readonly("bytes", [](const WordCache& cache) { return cache.table.bytes(); });
    py::class_<Batch>(module, "WordBatch", "Texts on their way through a WordCache.")
        .def(py::init<std::shared_ptr<WordCache>, py::list, int64_t, int>(), "cache"_a, "texts"_a, "max_length"_a,
             "threads"_a, "Look up a list of strings; max_length: pieces that are kept of a text, -1 for all.")
        .def_property_readonly("complete", &Batch::complete, "Whether nothing but `finish` is left to do.")
        .def("missing", &Batch::missing, "The words to `learn`, a list of strings.")
        .def("learn", &Batch::learn, "ids"_a.noconvert(), "offsets"_a.noconvert(), "costs"_a.noconvert(),
             "Add the missing words: ids int32 (total,), offsets int64 (n + 1,), costs uint32 (n,).")
        .def("direct", &Batch::direct, "The numbers of the texts to `finish`, int64 (m,).")
        .def("finish", &Batch::finish, "ids"_a.noconvert(), "offsets"_a.noconvert(),
             "Add those texts, ids int32 (total,) and offsets int64 (m + 1,); returns the ids of all texts, int64, "
             "their offsets, int64 (N + 1,), and how many texts were cut.");
}

}  // namespace st_paragram
