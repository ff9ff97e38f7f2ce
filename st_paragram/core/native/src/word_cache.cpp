// Converts texts to sentencepiece ids word by word, and segments each word only once.
// st_paragram/core/tokenizers/sentencepiece.py explains why this is exact, and for which models.
#include "bindings.h"
#include "threads.h"
#include "unigram.h"
#include "word_table.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace st_paragram {
namespace {

constexpr int64_t kGrain = 64;                                  // texts per piece for a thread
constexpr int64_t kLongestText = 1 << 15;                       // bytes; longer texts are encoded whole
constexpr int kGroup = 32;                                      // words looked up together, to wait for memory once
constexpr int64_t kMostNewBytes = 8 << 20;                      // of the new words of a thread in a batch
constexpr int64_t kMostPeak = int64_t{1} << (12 + kScoreBits);  // of a word in the table

// The words of a vocabulary. Lookups share the lock and run without the GIL. Words are added under both, so that a
// forked process, which had the GIL, gets a consistent table (and creates a new lock).
class WordCache {
public:
    WordCache(std::shared_ptr<const Unigram> model_, int64_t limit_)
        : model(std::move(model_)), limit(limit_), table(limit_) {
        if (limit < 0 || limit > kMostBytes) throw std::invalid_argument("limit is not in 0 .. 2^34 bytes");
    }

    std::shared_mutex& lock() {
        if (process_ != this_process()) {
            (void)lock_.release();  // other threads of the parent may hold it forever
            lock_ = std::make_unique<std::shared_mutex>();
            process_ = this_process();
        }
        return *lock_;
    }

    const std::shared_ptr<const Unigram> model;
    const int64_t limit;
    WordTable table;

private:
    std::unique_ptr<std::shared_mutex> lock_ = std::make_unique<std::shared_mutex>();
    int process_ = this_process();
};

// The pieces of a word; kAtOnce ids can be read.
struct Found {
    const int32_t* ids;
    int64_t count;
    bool has_unknown;
    int64_t cost, peak;  // see Segmentation
};

// Ids of texts, one after another, with space for kAtOnce more after the last id.
struct Ids {
    std::vector<int32_t> numbers;
    int64_t size = 0;

    void append(const Found& word, int64_t most, int32_t unknown) {
        const int64_t count = std::min(word.count, most);
        if (count <= 0) return;
        int32_t* to = room_for(count);
        if (word.has_unknown) {
            size = std::remove_copy(word.ids, word.ids + count, to, unknown) - numbers.data();
        } else {
            for (int64_t k = 0; k < count; k += kAtOnce) std::memcpy(to + k, word.ids + k, 4 * kAtOnce);
            size += count;
        }
    }

    void push(int32_t id) {
        *room_for(1) = id;
        ++size;
    }

private:
    int32_t* room_for(int64_t more) {
        if (size + more + kAtOnce > static_cast<int64_t>(numbers.size())) {
            numbers.resize(static_cast<size_t>(2 * (size + more) + 256));
        }
        return numbers.data() + size;
    }
};

// Memory of one thread of a batch: the ids of its texts, and the new words that it found.
struct alignas(64) Worker {
    Ids ids;
    std::unique_ptr<WordTable> words;
    Segmentation segmentation;
};

struct Text {
    const char* bytes;
    int64_t length;
    int64_t start = 0, count = 0;  // its ids, at ids of workers_[thread]
    int thread = 0;
    bool whole = false;  // left to sentencepiece
    bool cut = false;
};

// One batch of texts: words are looked up, then ids are assembled.
class Batch {
public:
    Batch(WordCache& cache, const py::list& texts, int64_t max_length, int threads)
        : cache_(cache),
          unknown_(cache.model->unknown()),
          max_length_(max_length < 0 ? INT64_MAX : max_length),
          threads_(usable_threads(threads)),
          workers_(static_cast<size_t>(threads_)) {
        texts_.reserve(texts.size());
        held_.reserve(texts.size());
        for (size_t i = 0; i < texts.size(); ++i) add_text(PyList_GET_ITEM(texts.ptr(), static_cast<Py_ssize_t>(i)));
        look_up_all();
        for (const Worker& worker : workers_) {
            if (!worker.words) continue;
            const std::unique_lock<std::shared_mutex> lock(cache_.lock());
            cache_.table.add_all(*worker.words);
        }
    }

    template <class Number>
    py::tuple result() const {
        const auto count = static_cast<int64_t>(texts_.size());
        Array<int64_t> offsets(count + 1);
        int64_t *offset = offsets.mutable_data(), cut = 0;
        offset[0] = 0;
        py::list whole;
        for (int64_t i = 0; i < count; ++i) {
            offset[i + 1] = offset[i] + texts_[i].count;
            cut += texts_[i].cut;
            if (texts_[i].whole) whole.append(i);
        }
        Array<Number> ids(offset[count]);
        Number* to = ids.mutable_data();
        {
            const py::gil_scoped_release release;
            parallel_for(count, 16 * kGrain, threads_, [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) {
                    const Ids& from = workers_[static_cast<size_t>(texts_[i].thread)].ids;
                    std::copy_n(from.numbers.data() + texts_[i].start, texts_[i].count, to + offset[i]);
                }
            });
        }
        return py::make_tuple(ids, offsets, cut, whole);
    }

private:
    // The UTF-8 of a text: that of an ASCII string, or a copy that lives as long as this batch. (PyUnicode_AsUTF8 would
    // keep the copy in the caller's string.)
    void add_text(PyObject* text) {
        if (!PyUnicode_Check(text)) throw py::type_error("a text is no string");
        py::object holder = py::reinterpret_borrow<py::object>(text);
        if (PyUnicode_IS_ASCII(text)) {
            texts_.push_back({reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), PyUnicode_GET_LENGTH(text)});
        } else {
            const bool wide = PyUnicode_KIND(text) != PyUnicode_1BYTE_KIND;
            if (cache_.model->lower_case() && wide &&
                PyUnicode_FindChar(text, kCapitalSigma, 0, PyUnicode_GET_LENGTH(text), 1) >= 0) {
                holder = holder.attr("lower")();
            }
            holder = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(holder.ptr()));
            if (!holder) throw py::error_already_set();
            texts_.push_back({PyBytes_AS_STRING(holder.ptr()), PyBytes_GET_SIZE(holder.ptr())});
        }
        held_.push_back(std::move(holder));
    }

    void look_up_all() {
        std::shared_mutex& cache_lock = cache_.lock();
        const py::gil_scoped_release release;
        const std::shared_lock<std::shared_mutex> lock(cache_lock);
        parallel_for(static_cast<int64_t>(texts_.size()), kGrain, threads_,
                     [&](int64_t begin, int64_t end, int thread) {
                         Worker& worker = workers_[static_cast<size_t>(thread)];
                         for (int64_t i = begin; i < end; ++i) {
                             texts_[i].thread = thread;
                             look_up(texts_[i], worker);
                         }
                     });
    }

    void look_up(Text& text, Worker& worker) const {
        Ids& ids = worker.ids;
        text.start = ids.size;
        bool whole = text.length > kLongestText;
        int64_t pieces = 0, cost = 0;
        const char *at = text.bytes, *const end = at + text.length;
        Word group[kGroup];
        while (!whole) {
            const int count = read_group(at, end, group);
            if (!count) break;
            for (int k = 0; k < count && !whole; ++k) {
                const Found word = find(group[k], worker);
                whole = cost + word.peak > Unigram::kMostCost || word.cost == kNeverCached;
                cost += word.cost;
                ids.append(word, max_length_ - pieces, unknown_);
                pieces += word.count;
            }
        }
        text.whole = whole;
        if (whole) {
            ids.size = text.start;
            return;
        }
        if (ids.size == text.start) ids.push(unknown_);  // a text without a known piece
        text.count = ids.size - text.start;
        text.cut = pieces > max_length_;
    }

    int read_group(const char*& at, const char* end, Word* group) const {
        int count = 0;
        for (; count < kGroup; ++count) {
            while (at < end && *at == ' ') ++at;
            if (at == end) break;
            group[count] = read_word(at, end);
            at += group[count].length;
            cache_.table.prefetch_slot(group[count]);
        }
        for (int k = 0; k < count; ++k) cache_.table.prefetch_record(group[k]);
        return count;
    }

    static Found found_in(const Record& record) {
        return {record.ids(), record.pieces(), record.has_unknown(), record.cost(), kMostPeak};
    }

    // A word of the cache or of the thread; other words are segmented and, unless very long, added to the thread.
    Found find(const Word& word, Worker& worker) const {
        if (word.length > kLongestWord) return segment(word, worker);
        if (const Record record = cache_.table.find(word); record.at) return found_in(record);
        if (!worker.words) worker.words = std::make_unique<WordTable>(std::min(cache_.limit, kMostNewBytes));
        if (const Record record = worker.words->find(word); record.at) return found_in(record);
        Found found = segment(word, worker);
        if (found.peak > kMostPeak || found.count > kMostPieces) found.count = 0, found.cost = kNeverCached;
        worker.words->add(word, found.ids, static_cast<uint32_t>(found.count), found.has_unknown,
                          static_cast<uint32_t>(found.cost));
        return found;
    }

    Found segment(const Word& word, Worker& worker) const {
        Segmentation& found = worker.segmentation;
        const std::string_view text(word.bytes, static_cast<size_t>(word.length));
        if (!cache_.model->segment(text, found)) return {nullptr, 0, false, kNeverCached, kNeverCached};
        return {found.ids, found.count, found.has_unknown, found.cost, found.peak};
    }

    WordCache& cache_;
    const int32_t unknown_;
    const int64_t max_length_;
    const int threads_;
    std::vector<Worker> workers_;
    std::vector<Text> texts_;
    std::vector<py::object> held_;  // the owners of the texts' bytes
};

py::tuple encode_words(WordCache& cache, const py::list& texts, int64_t max_length, int threads, bool wide) {
    const Batch batch(cache, texts, max_length, threads);
    return wide ? batch.result<int64_t>() : batch.result<int32_t>();
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
        .def(py::init([](const py::bytes& file, bool lower_case) {
                 return std::make_shared<Unigram>(std::string_view(file), lower_case);
             }),
             "file"_a, "lower_case"_a, py::keep_alive<1, 2>(),
             "Read a serialized ModelProto. Raises ValueError, with a reason in a few words, if sentencepiece is needed. "
             "lower_case: apply str.lower to words first.")
        .def("__len__", &Unigram::size)
        .def_property_readonly("unknown", &Unigram::unknown)
        .def("piece", &piece, "id"_a, "The text of a piece; None for unknown, control and unused pieces.");
    py::class_<WordCache>(module, "WordCache", "Pieces of words.")
        .def(py::init<std::shared_ptr<Unigram>, int64_t>(), "model"_a.none(false), "limit"_a, py::keep_alive<1, 2>(),
             "limit: bytes.")
        .def("__len__", [](const WordCache& cache) { return cache.table.words(); })
        .def_property_readonly("bytes", [](const WordCache& cache) { return cache.table.bytes(); });
    module.def("lower_case", [](const std::string& text) {
        std::string result;
        lower_case(text, result);
        return result;
    }, "text"_a, "The lower case of a text that has no capital sigma.");
    module.def("encode_words", &encode_words, "cache"_a, "texts"_a, "max_length"_a, "threads"_a, "wide"_a,
               "Encode a list of strings. Returns their ids, int64 if wide, else int32; their offsets, int64 (N + 1,); how "
               "many texts were cut to max_length pieces (-1: none); and the numbers of the texts that sentencepiece must "
               "encode whole, without ids here.");
}

}  // namespace st_paragram
