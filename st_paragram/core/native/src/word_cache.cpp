// Texts to sentencepiece ids, word by word: every word is segmented once. Why that is exact, and for which models, says
// st_paragram/core/tokenizers/word_cache.py.
#include "bindings.h"
#include "lower_case.h"
#include "threads.h"
#include "unigram.h"
#include "word_table.h"

#include <algorithm>
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

constexpr int64_t kGrain = 64;                     // texts given to a thread at a time
constexpr int64_t kLongestText = 1 << 15;          // bytes; longer texts are encoded whole
constexpr int kGroup = 32;                         // words looked up together, to wait for memory once
constexpr int64_t kMostFreshBytes = 8 << 20;       // of the words that a thread finds in a batch
constexpr int64_t kMostPeak = int64_t{1} << (12 + kScoreBits);  // of a word in the table

// The words of a vocabulary. Lookups share the lock and run without the GIL; words are added under both, so that a
// forked process, which had the GIL, finds the table whole (and makes a lock of its own).
class WordCache {
public:
    WordCache(std::shared_ptr<const Unigram> model, bool lower_case, int64_t limit)
        : model(std::move(model)),
          lower_case(lower_case),
          limit(checked(limit)),
          table(limit),
          lock_(std::make_unique<std::shared_mutex>()) {}

    std::shared_mutex& lock() {
        if (process_ != getpid()) {
            (void)lock_.release();  // other threads of the parent may hold it for ever
            lock_ = std::make_unique<std::shared_mutex>();
            process_ = getpid();
        }
        return *lock_;
    }

    const std::shared_ptr<const Unigram> model;
    const bool lower_case;
    const int64_t limit;
    WordTable table;

private:
    static int64_t checked(int64_t limit) {
        if (limit < 0 || limit > kMostBytes) throw std::invalid_argument("limit is not in 0 .. 2^34 bytes");
        return limit;
    }

    std::unique_ptr<std::shared_mutex> lock_;
    int process_ = getpid();
};

// What a word's pieces are; kAtOnce ids can be read.
struct Found {
    const int32_t* ids;
    int64_t count;
    bool has_unknown;
    int64_t cost, peak;  // see Segmentation
};

Found found(const Record& record) {
    return {record.ids(), record.pieces(), record.has_unknown(), record.cost(), kMostPeak};
}

// Words that are new to a table: each is segmented, once as a rule. Every thread has such words of a batch to itself.
class FreshWords {
public:
    explicit FreshWords(const WordCache& cache)
        : cache_(cache), table_(std::min(cache.limit, kMostFreshBytes)) {}

    Found find(const Word& word) {
        if (word.length > kLongestWord) return segment(word);
        if (const Record record = table_.find(word); record.at) return found(record);
        Found result = segment(word);
        if (result.peak > kMostPeak || result.count > kMostPieces) result.count = 0, result.cost = kNeverCached;
        table_.add(word, result.ids, static_cast<uint32_t>(result.count), result.has_unknown,
                   static_cast<uint32_t>(result.cost));
        return result;
    }

    const WordTable& table() const { return table_; }

private:
    Found segment(const Word& word) {
        std::string_view text(word.bytes, static_cast<size_t>(word.length));
        if (cache_.lower_case) {
            lower_case(text, work_.cased);
            text = work_.cased;
        }
        if (!cache_.model->segment(text, work_)) return {nullptr, 0, false, kNeverCached, kNeverCached};
        const int32_t* ids = work_.ids.numbers.data();
        const bool has_unknown = std::find(ids, ids + work_.ids.size, cache_.model->unknown()) != ids + work_.ids.size;
        return {ids, work_.ids.size, has_unknown, work_.cost, work_.peak};
    }

    const WordCache& cache_;
    Segmentation work_;
    WordTable table_;
};

enum class State : uint8_t { kWaiting, kDone, kDirect };

struct Text {
    const char* bytes;
    int64_t length;
    int64_t start, count;  // its ids, at ids of workers_[thread]
    int thread;
    State state;
    bool cut;
};

// What a thread of a batch has to itself.
struct alignas(64) Worker {
    Ids ids;
    std::unique_ptr<FreshWords> fresh;
};

// One batch of texts on its way: looked up, completed by what sentencepiece says of some texts, put together.
class Batch {
public:
    Batch(std::shared_ptr<WordCache> cache, const py::list& texts, int64_t max_length, int threads, bool wide)
        : cache_(std::move(cache)),
          unknown_(cache_->model->unknown()),
          max_length_(max_length < 0 ? INT64_MAX : max_length),
          threads_(usable_threads(threads)),
          wide_(wide),
          workers_(static_cast<size_t>(threads_)) {
        texts_.reserve(texts.size());
        held_.reserve(texts.size());
        for (size_t i = 0; i < texts.size(); ++i) add_text(PyList_GET_ITEM(texts.ptr(), static_cast<Py_ssize_t>(i)));
        look_up();
        keep_words();
    }

    bool complete() const { return !count_direct(); }

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
            text.start = workers_[0].ids.size;
            workers_[0].ids.append_without(unknown_, ids.data() + begin, std::min(pieces, max_length_));
            close(text, pieces);
        }
        return together();
    }

    // Ids of all texts, their offsets, and how many texts were cut.
    py::tuple together() const { return wide_ ? together<int64_t>() : together<int32_t>(); }

private:
    // The UTF-8 of a text: what an ASCII string has, or a copy for as long as this batch lives. (PyUnicode_AsUTF8 would
    // leave the copy in the caller's string.)
    void add_text(PyObject* text) {
        if (!PyUnicode_Check(text)) throw py::type_error("a text is no string");
        py::object holder = py::reinterpret_borrow<py::object>(text);
        const bool ascii = PyUnicode_IS_ASCII(text);
        if (!ascii) {
            if (cache_->lower_case && has_capital_sigma(text)) holder = holder.attr("lower")();
            holder = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(holder.ptr()));
            if (!holder) throw py::error_already_set();
        }
        const char* bytes = ascii ? reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text))
                                  : PyBytes_AS_STRING(holder.ptr());
        const int64_t length = ascii ? PyUnicode_GET_LENGTH(text) : PyBytes_GET_SIZE(holder.ptr());
        texts_.push_back({bytes, length, 0, 0, 0, length > kLongestText ? State::kDirect : State::kWaiting, false});
        held_.push_back(std::move(holder));
    }

    static bool has_capital_sigma(PyObject* text) {
        return PyUnicode_KIND(text) != PyUnicode_1BYTE_KIND &&
               PyUnicode_FindChar(text, kCapitalSigma, 0, PyUnicode_GET_LENGTH(text), 1) >= 0;
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

    void look_up() {
        std::shared_mutex& cache_lock = cache_->lock();
        const py::gil_scoped_release release;
        const std::shared_lock<std::shared_mutex> lock(cache_lock);
        parallel_for(static_cast<int64_t>(texts_.size()), kGrain, threads_,
                     [&](int64_t begin, int64_t end, int thread) {
                         for (int64_t i = begin; i < end; ++i) {
                             if (texts_[i].state == State::kWaiting) look_up(texts_[i], thread);
                         }
                     });
    }

    void look_up(Text& text, int thread) {
        Worker& worker = workers_[static_cast<size_t>(thread)];
        text.thread = thread;
        text.start = worker.ids.size;
        int64_t pieces = 0, cost = 0;
        const char *at = text.bytes, *const end = at + text.length;
        Word group[kGroup];
        while (const int count = read_group(at, end, group)) {
            for (int k = 0; k < count; ++k) {
                const Found word = find(group[k], worker);
                if (cost + word.peak > Unigram::kMostCost || word.cost == kNeverCached) {
                    worker.ids.size = text.start;
                    text.state = State::kDirect;
                    return;
                }
                cost += word.cost;
                append(worker.ids, word, max_length_ - pieces);
                pieces += word.count;
            }
        }
        close(text, pieces);
    }

    int read_group(const char*& at, const char* end, Word* group) const {
        int count = 0;
        for (; count < kGroup; ++count) {
            while (at < end && *at == ' ') ++at;
            if (at == end) break;
            group[count] = read_word(at, end);
            at += group[count].length;
            cache_->table.prefetch_slot(group[count]);
        }
        for (int k = 0; k < count; ++k) cache_->table.prefetch_record(group[k]);
        return count;
    }

    Found find(const Word& word, Worker& worker) const {
        if (word.length <= kLongestWord) {
            if (const Record record = cache_->table.find(word); record.at) return found(record);
        }
        if (!worker.fresh) worker.fresh = std::make_unique<FreshWords>(*cache_);
        return worker.fresh->find(word);
    }

    void append(Ids& ids, const Found& word, int64_t room) const {
        const int64_t count = std::min(word.count, room);
        if (count <= 0) return;
        if (word.has_unknown) {
            ids.append_without(unknown_, word.ids, count);
        } else {
            ids.append(word.ids, count);
        }
    }

    // The last thing to do for a text: a text without a known piece is the unknown id.
    void close(Text& text, int64_t pieces) {
        Ids& ids = workers_[static_cast<size_t>(text.thread)].ids;
        if (ids.size == text.start) ids.push(unknown_);
        text.count = ids.size - text.start;
        text.cut = pieces > max_length_;
        text.state = State::kDone;
    }

    void keep_words() {
        for (Worker& worker : workers_) {
            if (!worker.fresh) continue;
            const std::unique_lock<std::shared_mutex> lock(cache_->lock());
            cache_->table.add_all(worker.fresh->table());
            worker.fresh.reset();
        }
    }

    template <class Number>
    py::tuple together() const {
        const auto count = static_cast<int64_t>(texts_.size());
        Array<int64_t> offsets(count + 1);
        int64_t *offset = offsets.mutable_data(), cut = 0;
        offset[0] = 0;
        for (int64_t i = 0; i < count; ++i) {
            offset[i + 1] = offset[i] + texts_[i].count;
            cut += texts_[i].cut;
        }
        Array<Number> ids(offset[count]);
        Number* result = ids.mutable_data();
        {
            const py::gil_scoped_release release;
            parallel_for(count, 16 * kGrain, threads_, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) {
                    const Ids& from = workers_[static_cast<size_t>(texts_[i].thread)].ids;
                    std::copy_n(from.numbers.data() + texts_[i].start, texts_[i].count, result + offset[i]);
                }
            });
        }
        return py::make_tuple(ids, offsets, cut);
    }

    mutable OneAtATime callers_;
    const std::shared_ptr<WordCache> cache_;
    const int32_t unknown_;
    const int64_t max_length_;
    const int threads_;
    const bool wide_;
    std::vector<Worker> workers_;
    std::vector<Text> texts_;
    std::vector<py::object> held_;  // what the texts' bytes belong to
};

py::object encode_words(std::shared_ptr<WordCache> cache, const py::list& texts, int64_t max_length, int threads,
                        bool wide) {
    auto batch = std::make_unique<Batch>(std::move(cache), texts, max_length, threads, wide);
    if (batch->complete()) return batch->together();
    return py::cast(std::move(batch));
}

py::object piece(const Unigram& model, int64_t id) {
    if (id < 0 || id >= model.size()) throw py::index_error("no piece has the id " + std::to_string(id));
    const Kind kind = model.kind(static_cast<int32_t>(id));
    if (kind == Kind::kUnknown || kind == Kind::kControl || kind == Kind::kUnused) return py::none();
    return py::str(std::string(model.piece(static_cast<int32_t>(id))));
}

}  // namespace

void bind_word_cache(py::module_& module) {
    using namespace py::literals;
    py::class_<Unigram, std::shared_ptr<Unigram>>(module, "Unigram", "A sentencepiece model, for words one by one.")
        .def(py::init([](const py::bytes& file) { return std::make_shared<Unigram>(std::string_view(file)); }), "file"_a,
             "Read a serialized ModelProto. Raises ValueError, with a reason in a few words, if sentencepiece is needed.")
        .def("__len__", &Unigram::size)
        .def_property_readonly("unknown", &Unigram::unknown)
        .def_property_readonly("bytes", &Unigram::bytes)
        .def("piece", &piece, "id"_a, "The text of a piece; None for unknown, control and unused pieces.");
    py::class_<WordCache, std::shared_ptr<WordCache>>(module, "WordCache", "Pieces of words.")
        .def(py::init([](std::shared_ptr<Unigram> model, bool lower_case, int64_t limit) {
                 return std::make_shared<WordCache>(std::move(model), lower_case, limit);
             }),
             "model"_a.none(false), "lower_case"_a, "limit"_a, "lower_case: apply str.lower first; limit: bytes.")
        .def("__len__", [](const WordCache& cache) { return cache.table.words(); })
        .def_property_readonly("bytes", [](const WordCache& cache) { return cache.table.bytes(); });
    py::class_<Batch>(module, "WordBatch", "Texts some of which sentencepiece must encode.")
        .def("direct", &Batch::direct, "The numbers of those texts, int64 (m,).")
        .def("finish", &Batch::finish, "ids"_a.noconvert(), "offsets"_a.noconvert(),
             "Add those texts, ids int32 (total,) and offsets int64 (m + 1,); returns what encode_words does.");
    module.def("lower_case", [](const std::string& text) {
        std::string result;
        lower_case(text, result);
        return result;
    }, "text"_a, "The lower case of a text that has no capital sigma.");
    module.def("encode_words", &encode_words, "cache"_a.none(false), "texts"_a, "max_length"_a, "threads"_a, "wide"_a,
               "Encode a list of strings: their ids, int64 if wide, else int32, their offsets, int64 (N + 1,), and how "
               "many texts were cut to max_length pieces (-1: none); or a WordBatch if sentencepiece must encode some.");
}

}  // namespace st_paragram
