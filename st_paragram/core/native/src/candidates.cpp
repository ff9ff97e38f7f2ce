// Nearest rows: the best of a tile of similarities, and the cosines of given rows. The results are bit-identical to the
// references, st_paragram/tools/neighbors/exact.py and vectors.py.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace st_paragram {
namespace {

constexpr int64_t kRowGrain = 64, kColumnGrain = 512, kQueryGrain = 16;  // items per piece for a thread
constexpr int64_t kAhead = 4;                                            // rows to prefetch

// The best candidates of one row of a table, in order; ties go to those that came first.
struct Best {
    float* values;
    int64_t* ids;
    int64_t count;

    float least() const { return values[count - 1]; }

    void insert(float value, int64_t id) {
        int64_t place = count - 1;
        for (; place > 0 && values[place - 1] < value; --place) {
            values[place] = values[place - 1];
            ids[place] = ids[place - 1];
        }
        values[place] = value;
        ids[place] = id;
    }
};

void keep_best(const Array<float>& tile, int64_t first, Array<float>& values, Array<int64_t>& ids, bool of_columns,
               int threads) {
    check_shape(tile, "tile", {-1, -1});
    const int64_t rows = tile.shape(0), columns = tile.shape(1);
    check_shape(values, "values", {of_columns ? columns : rows, -1});
    check_shape(ids, "ids", {values.shape(0), values.shape(1)});
    const int64_t count = values.shape(1);
    if (count < 1) throw refusal("values", "has no columns");
    if (first < 0 || first > INT64_MAX - rows - columns) throw refusal("first", "is no number of a row");
    float* value = writable(values, "values", tile, ids);
    int64_t* id = writable(ids, "ids", tile, values);
    const float* from = tile.data();
    py::gil_scoped_release release;
    const auto best = [=](int64_t i) { return Best{value + i * count, id + i * count, count}; };
    if (!of_columns) {
        parallel_for(rows, kRowGrain, usable_threads(threads), [=](int64_t begin, int64_t end, int) {
            for (int64_t r = begin; r < end; ++r) {
                const float* row = from + r * columns;
                Best own = best(r);
                for (int64_t c = 0; (c = loops().first_above(row, c, columns, own.least())) < columns; ++c) {
                    own.insert(row[c], first + c);
                }
            }
        });
        return;
    }
    const auto block = [=](int64_t begin, int64_t end) {
        float least[kColumnGrain];
        for (int64_t c = begin; c < end; ++c) least[c - begin] = best(c).least();
        for (int64_t r = 0; r < rows; ++r) {
            const float* row = from + r * columns + begin;
            for (int64_t c = 0; (c = loops().first_better(row, least, c, end - begin)) < end - begin; ++c) {
                Best own = best(begin + c);
                own.insert(row[c], first + r);
                least[c] = own.least();
            }
        }
    };
    // A single thread gets all columns at once.
    parallel_for(columns, kColumnGrain, usable_threads(threads), [=](int64_t begin, int64_t end, int) {
        for (; begin < end; begin += kColumnGrain) block(begin, std::min(begin + kColumnGrain, end));
    });
}

// Rows of stored vectors: shards with equal numbers of rows, except that the last may be smaller.
template <class Number>
struct Shards {
    std::vector<const Number*> data;
    int64_t size = 1, count = 0, dim = 0;

    Shards(const py::list& arrays, const py::array& out, int64_t dim_) : dim(dim_) {
        for (size_t i = 0; i < arrays.size(); ++i) {
            if (!py::isinstance<Array<Number>>(arrays[i])) throw refusal("shards", "differ in type or are not contiguous");
            const auto shard = py::cast<Array<Number>>(arrays[i]);
            check_shape(shard, "shard", {-1, dim});
            if (i == 0) size = std::max<int64_t>(shard.shape(0), 1);
            if (shard.shape(0) > size || (i + 1 < arrays.size() && shard.shape(0) != size)) {
                throw refusal("shards", "differ in their numbers of rows");
            }
            if (overlap(out, shard)) throw refusal("out", "shares its memory with another array");
            data.push_back(shard.data());
            count += shard.shape(0);
        }
    }

    const Number* operator[](int64_t row) const { return data[row / size] + row % size * dim; }
};

template <auto kProduct, class Number>
void fill_cosines(const Array<float>& queries, const py::list& arrays, const Array<float>& lengths,
                  const Array<int64_t>& rows, Array<float>& out, int threads) {
    const int64_t n = queries.shape(0), dim = queries.shape(1), wanted = rows.shape(1);
    const Shards<Number> shards(arrays, out, dim);
    check_shape(lengths, "lengths", {shards.count});
    const int64_t* row = rows.data();
    for (int64_t i = 0; i < n * wanted; ++i) {
        if (row[i] < -1 || row[i] >= shards.count) {
            throw std::invalid_argument("row " + std::to_string(row[i]) + " is not among the vectors");
        }
    }
    float* to = writable(out, "out", queries, lengths, rows);
    const float *query = queries.data(), *length = lengths.data();
    const auto product = loops().*kProduct;
    py::gil_scoped_release release;
    parallel_for(n, kQueryGrain, usable_threads(threads), [&, row, query, length](int64_t begin, int64_t end, int) {
        for (int64_t i = begin * wanted; i < end * wanted; ++i) {
            if (i + kAhead < end * wanted && row[i + kAhead] >= 0) {
                loops().ask(shards[row[i + kAhead]], dim * static_cast<int64_t>(sizeof(Number)));
            }
            if (row[i] < 0) continue;
            to[i] = static_cast<float>(product(query + i / wanted * dim, shards[row[i]], length[row[i]], dim));
        }
    });
}

void candidate_cosines(const Array<float>& queries, const py::list& shards, const Array<float>& lengths,
                       const Array<int64_t>& rows, Array<float>& out, int threads) {
    check_shape(queries, "queries", {-1, -1});
    check_shape(lengths, "lengths", {-1});
    check_shape(rows, "rows", {queries.shape(0), -1});
    check_shape(out, "out", {rows.shape(0), rows.shape(1)});
    if (shards.size() == 0) throw refusal("shards", "are none");
    const auto fill = py::isinstance<Array<float>>(shards[0])    ? &fill_cosines<&Loops::product_f32, float>
                      : py::isinstance<Array<int8_t>>(shards[0]) ? &fill_cosines<&Loops::product_i8, int8_t>
                                                                 : &fill_cosines<&Loops::product_f16, uint16_t>;
    fill(queries, shards, lengths, rows, out, threads);
}

}  // namespace

void bind_candidates(py::module_& module) {
    using namespace py::literals;
    module.def("keep_best", &keep_best, "tile"_a.noconvert(), "first"_a, "values"_a.noconvert(), "ids"_a.noconvert(),
               "of_columns"_a, "threads"_a,
               "Put what is better in tile, float32 (n, m), into values, float32 (n, c), each row falling, and its columns "
               "plus first into ids, int64 (n, c); with of_columns the same of the tile's columns, (m, c), and its rows.");
    module.def("candidate_cosines", &candidate_cosines, "queries"_a.noconvert(), "shards"_a, "lengths"_a.noconvert(),
               "rows"_a.noconvert(), "out"_a.noconvert(), "threads"_a,
               "Fill out, float32 (n, c), with products of queries, float32 (n, D), and the rows given for each, int64 "
               "(n, c), of shards, arrays (s, D) of float32, int8 or float16 (as uint16), divided by their lengths, "
               "float32 (rows,), in float32; where a row is -1, out stays as it is.");
}

}  // namespace st_paragram
