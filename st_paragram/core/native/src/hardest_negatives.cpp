// The hardest negatives of a mega-batch by products of 8-bit vectors. The reference is losses/hardest_negatives.py.
// Rows are rounded to 6 bits and columns to 7, each vector with a separate scale, so that four products at a time fit
// in 16 bits. This is two to four times as fast as float32, with cosines accurate to about 0.001.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

#include <algorithm>
#include <vector>

namespace st_paragram {
namespace {

constexpr int64_t kPanel = 16, kTile = 4;  // columns and rows per call of Loops::products
constexpr int64_t kRowBlock = 64;          // rows whose similarities are in memory at a time, per thread
constexpr float kNothing = -2.0f;          // below any cosine
constexpr int kRowLevels = 31, kRowShift = 32, kColumnLevels = 63;
constexpr int64_t kMostDimensions = 1 << 18;  // sums of products fit in 32 bits
constexpr int64_t kMostPairs = 1 << 29;       // numbers of the sentences of both sides also fit

struct Vectors {
    const float* first;   // (n, dim)
    const float* second;  // (n, dim)
    int64_t n, dim;
    const float* operator[](int64_t i) const { return i < n ? first + i * dim : second + (i - n) * dim; }
};

struct Columns {
    int64_t count, depth;
    std::vector<int8_t> panels;
    std::vector<float> scales;
    std::vector<int32_t> shifts;  // what the rows' shift adds to a sum

    Columns(const Vectors& vectors, int64_t from, int64_t count_, int64_t depth_, int threads)
        : count(count_), depth(depth_) {
        const int64_t panel_count = (count + kPanel - 1) / kPanel;
        panels.assign(panel_count * kPanel * depth, 0);
        scales.assign(panel_count * kPanel, 0);
        shifts.assign(panel_count * kPanel, 0);
        parallel_for(panel_count, 4, threads, [&](int64_t begin, int64_t end, int) {
            std::vector<int8_t> bytes(depth);
            for (int64_t c = begin * kPanel; c < std::min(end * kPanel, count); ++c) {
                scales[c] = loops().quantize(vectors[from + c], vectors.dim, kColumnLevels, bytes.data());
                int8_t* panel = panels.data() + (c / kPanel) * kPanel * depth;
                int32_t sum = 0;
                for (int64_t k = 0; k < vectors.dim; ++k) {
                    panel[(k / 4 * kPanel + c % kPanel) * 4 + k % 4] = bytes[k];
                    sum += bytes[k];
                }
                shifts[c] = kRowShift * sum;
            }
        });
    }
};

// Which pairs share a text: equal texts have equal labels.
struct Labels {
    const int64_t *first, *second;  // null without labels
    const uint8_t* shares;          // whether the pair shares a text with another pair

    void mask(float* similarity, int64_t row_pair, int64_t column, int64_t count, int64_t n) const {
        if (!first || !shares[row_pair]) return;
        const int64_t a = first[row_pair], b = second[row_pair];
        for (int64_t i = 0; i < count; ++i, ++column) {
            const int64_t pair = column >= n ? column - n : column;
            const bool shared = first[pair] == a || first[pair] == b || second[pair] == a || second[pair] == b;
            if (shared) similarity[i] = kNothing;
        }
    }
};

// Memory of one thread: the best rows of the columns so far, and space for a block.
struct Worker {
    std::vector<float> best;
    std::vector<int32_t> best_row;
    std::vector<float> similarity;
    std::vector<uint8_t> rows;
};

class Search {
public:
    Search(const Vectors& vectors, const Labels& labels, bool both, int threads)
        : vectors_(vectors), labels_(labels), both_(both), threads_(usable_threads(threads)),
          count_(both ? 2 * vectors.n : vectors.n), depth_((vectors.dim + 15) / 16 * 16),
          columns_(vectors, both ? 0 : vectors.n, count_, depth_, threads_), row_best_(count_, kNothing),
          row_column_(count_, -1) {
        const std::vector<float> best(count_, kNothing), similarity(kRowBlock * columns_.scales.size());
        const std::vector<int32_t> best_row(count_, -1);
        workers_.assign(threads_, {best, best_row, similarity, std::vector<uint8_t>(kRowBlock * depth_)});
    }

    void run(int64_t* of_row, int64_t* of_column) {
        const int64_t blocks = (count_ + kRowBlock - 1) / kRowBlock;
        parallel_for(blocks, 1, threads_, [&](int64_t begin, int64_t end, int thread) {
            for (int64_t block = begin; block < end; ++block) search(block * kRowBlock, workers_[thread]);
        });
        merge(of_row, of_column);
    }

private:
    void search(int64_t first_row, Worker& worker) {
        float* const similarity = worker.similarity.data();
        const int64_t row_count = std::min(kRowBlock, count_ - first_row);
        float scales[kRowBlock] = {};
        quantize_rows(first_row, row_count, worker.rows.data(), scales);
        // With both sides, the product is symmetric: the columns before the block were already rows.
        const int64_t first_panel = both_ ? first_row / kPanel : 0;
        const int64_t panels = static_cast<int64_t>(columns_.scales.size()) / kPanel;
        const int64_t first_column = first_panel * kPanel, width = (panels - first_panel) * kPanel;
        alignas(64) int32_t sums[kTile * kPanel];
        for (int64_t panel = first_panel; panel < panels; ++panel) {
            const int64_t column = panel * kPanel;
            for (int64_t tile = 0; tile < row_count; tile += kTile) {
                loops().products(worker.rows.data() + tile * depth_, &columns_.panels[column * depth_], depth_, sums);
                for (int64_t r = 0; r < kTile; ++r) {
                    float* to = similarity + (tile + r) * width + column - first_column;
                    for (int64_t c = 0; c < kPanel; ++c) {
                        const int32_t sum = sums[r * kPanel + c] - columns_.shifts[column + c];
                        to[c] = static_cast<float>(sum) * scales[tile + r] * columns_.scales[column + c];
                    }
                }
            }
        }
        for (int64_t r = 0; r < row_count; ++r) scan_row(first_row + r, similarity + r * width, first_column, worker);
    }

    void quantize_rows(int64_t first_row, int64_t row_count, uint8_t* rows, float* scales) {
        std::fill_n(rows, kRowBlock * depth_, static_cast<uint8_t>(kRowShift));
        for (int64_t r = 0; r < row_count; ++r) {
            int8_t* bytes = reinterpret_cast<int8_t*>(rows + r * depth_);
            scales[r] = loops().quantize(vectors_[first_row + r], vectors_.dim, kRowLevels, bytes);
            for (int64_t k = 0; k < vectors_.dim; ++k) bytes[k] = static_cast<int8_t>(bytes[k] + kRowShift);
        }
    }

    void scan_row(int64_t row, float* similarity, int64_t first_column, Worker& worker) {
        const int64_t n = vectors_.n, pair = row % n, width = count_ - first_column;
        for (const int64_t own : {pair, pair + n}) {
            if (own >= first_column && own < count_) similarity[own - first_column] = kNothing;
        }
        labels_.mask(similarity, pair, first_column, width, n);
        const int64_t found = loops().scan(similarity, width, static_cast<int32_t>(row),
                                           worker.best.data() + first_column, worker.best_row.data() + first_column,
                                           &row_best_[row]);
        row_column_[row] = row_best_[row] > kNothing ? static_cast<int32_t>(first_column + found) : -1;
    }

    // Merge the threads' columns; ties go to the lowest row, so that results do not depend on the number of threads.
    void merge(int64_t* of_row, int64_t* of_column) {
        const int64_t n = vectors_.n;
        for (int64_t i = 0; i < count_; ++i) {
            float value = kNothing;
            int32_t row = -1;
            for (const Worker& worker : workers_) {
                if (worker.best_row[i] < 0 || worker.best[i] < value) continue;
                if (worker.best[i] == value && worker.best_row[i] > row) continue;
                value = worker.best[i];
                row = worker.best_row[i];
            }
            if (both_) {
                const int32_t found = value > row_best_[i] ? row : row_column_[i];
                (i < n ? of_row[i] : of_column[i - n]) = found >= 0 ? found : (i + n) % count_;
            } else {
                of_row[i] = row_column_[i] >= 0 ? row_column_[i] : i;
                of_column[i] = row >= 0 ? row : i;
            }
        }
    }

    const Vectors vectors_;
    const Labels labels_;
    const bool both_;
    const int threads_;
    const int64_t count_, depth_;
    const Columns columns_;
    std::vector<Worker> workers_;
    std::vector<float> row_best_;
    std::vector<int32_t> row_column_;
};

void hardest_negatives(const Array<float>& first, const Array<float>& second, const Array<int64_t>& first_labels,
                       const Array<int64_t>& second_labels, const Array<uint8_t>& shares, bool both_sides, int threads,
                       Array<int64_t>& of_first, Array<int64_t>& of_second) {
    check_shape(first, "first", {-1, -1});
    const int64_t n = first.shape(0);
    check_shape(second, "second", {n, first.shape(1)});
    check_shape(of_first, "of_first", {n});
    check_shape(of_second, "of_second", {n});
    const bool labelled = shares.size() > 0;
    if (labelled) check_shape(first_labels, "first_labels", {n});
    if (labelled) check_shape(second_labels, "second_labels", {n});
    if (labelled) check_shape(shares, "shares", {n});
    if (!loops().products) throw std::runtime_error("no 8-bit products on this processor");
    const bool too_large = n > kMostPairs || first.shape(1) > kMostDimensions;
    if (too_large) throw std::invalid_argument("more pairs or columns than 32 bits can count");
    const Vectors vectors{first.data(), second.data(), n, first.shape(1)};
    const Labels labels{labelled ? first_labels.data() : nullptr, labelled ? second_labels.data() : nullptr,
                        labelled ? shares.data() : nullptr};
    int64_t* row = writable(of_first, "of_first", first, second, first_labels, second_labels, shares, of_second);
    int64_t* column = writable(of_second, "of_second", first, second, first_labels, second_labels, shares);
    py::gil_scoped_release release;
    Search(vectors, labels, both_sides, threads).run(row, column);
}

}  // namespace

void bind_hardest_negatives(py::module_& module) {
    using namespace py::literals;
    module.def("hardest_negatives", &hardest_negatives, "first"_a.noconvert(), "second"_a.noconvert(),
               "first_labels"_a.noconvert(), "second_labels"_a.noconvert(), "shares"_a.noconvert(), "both_sides"_a,
               "threads"_a, "of_first"_a.noconvert(), "of_second"_a.noconvert(),
               "Fill of_first and of_second, int64 (n,), from embeddings float32 (n, D) and labels int64 (n,); shares, "
               "uint8 (n,), says whose texts occur in other pairs, and is empty if there are no labels.");
}

}  // namespace st_paragram
