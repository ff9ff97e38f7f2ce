// Means of table rows: what a sentence embedding is.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace st_paragram {
namespace {

constexpr int64_t kGrain = 16;  // sentences given to a thread at a time

// Refuse what would read or write outside the arrays, or write what is still to be read; returns where to write. A number
// of the table holds `kPerCell` components.
template <int64_t kPerCell = 1, class Number, class... Others>
float* check(const Array<Number>& table, const Array<int32_t>& ids, const Array<int64_t>& offsets, Array<float>& out,
             const Others&... others) {
    check_shape(table, "table", {-1, -1});
    check_shape(ids, "ids", {-1});
    check_shape(offsets, "offsets", {-1});
    check_shape(out, "out", {offsets.shape(0) - 1, kPerCell * table.shape(1)});
    const int64_t* o = offsets.data();
    const int64_t n = offsets.shape(0) - 1;
    bool good = n >= 0 && o[0] == 0 && o[n] == ids.shape(0);
    for (int64_t i = 0; good && i < n; ++i) good = o[i] <= o[i + 1];
    if (!good) throw std::invalid_argument("offsets do not grow from 0 to the number of ids");
    uint32_t largest = 0;
    const int32_t* id = ids.data();
    for (int64_t i = 0; i < ids.shape(0); ++i) {
        const uint32_t value = static_cast<uint32_t>(id[i]);  // a negative id becomes one that no table has
        largest = value > largest ? value : largest;
    }
    const int64_t rows = std::min(table.shape(0), static_cast<py::ssize_t>(INT32_MAX) + 1);
    if (ids.shape(0) > 0 && static_cast<int64_t>(largest) >= rows) {
        throw std::invalid_argument("id " + std::to_string(static_cast<int32_t>(largest)) + " is not a row of the table");
    }
    return writable(out, "out", table, ids, offsets, others...);
}

template <class Mean>
void each_sentence(const Array<int64_t>& offsets, int64_t dim, float* result, bool normalized, int threads, Mean mean) {
    const int64_t n = offsets.shape(0) - 1;
    const int64_t* o = offsets.data();
    py::gil_scoped_release release;
    parallel_for(n, kGrain, threads, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
            mean(o[i], o[i + 1] - o[i], result + i * dim);
            if (normalized) loops().normalize(result + i * dim, dim);
        }
    });
}

void mean_rows(const Array<float>& table, const Array<int32_t>& ids, const Array<int64_t>& offsets, Array<float>& out,
               bool normalized, int threads) {
    float* result = check(table, ids, offsets, out);
    const float* rows = table.data();
    const int32_t* id = ids.data();
    const int64_t dim = table.shape(1);
    each_sentence(offsets, dim, result, normalized, threads, [=](int64_t first, int64_t count, float* row) {
        loops().mean_f32(rows, dim, id + first, count, row);
    });
}

void mean_rows_f16(const Array<uint16_t>& table, const Array<int32_t>& ids, const Array<int64_t>& offsets,
                   Array<float>& out, bool normalized, int threads) {
    float* result = check(table, ids, offsets, out);
    const uint16_t* rows = table.data();
    const int32_t* id = ids.data();
    const int64_t dim = table.shape(1);
    each_sentence(offsets, dim, result, normalized, threads, [=](int64_t first, int64_t count, float* row) {
        loops().mean_f16(rows, dim, id + first, count, row);
    });
}

void mean_rows_i8(const Array<int8_t>& table, const Array<float>& scales, const Array<int32_t>& ids,
                  const Array<int64_t>& offsets, Array<float>& out, bool normalized, int threads) {
    float* result = check(table, ids, offsets, out, scales);
    check_shape(scales, "scales", {table.shape(0)});
    const int8_t* rows = table.data();
    const float* scale = scales.data();
    const int32_t* id = ids.data();
    const int64_t dim = table.shape(1);
    each_sentence(offsets, dim, result, normalized, threads, [=](int64_t first, int64_t count, float* row) {
        loops().mean_i8(rows, scale, dim, id + first, count, row);
    });
}

void mean_rows_i4(const Array<uint8_t>& table, const Array<float>& scales, const Array<int32_t>& ids,
                  const Array<int64_t>& offsets, Array<float>& out, bool normalized, int threads) {
    float* result = check<2>(table, ids, offsets, out, scales);
    check_shape(scales, "scales", {table.shape(0)});
    const uint8_t* rows = table.data();
    const float* scale = scales.data();
    const int32_t* id = ids.data();
    const int64_t dim = out.shape(1);
    each_sentence(offsets, dim, result, normalized, threads, [=](int64_t first, int64_t count, float* row) {
        loops().mean_i4(rows, scale, dim, id + first, count, row);
    });
}

}  // namespace

void bind_mean_rows(py::module_& module) {
    using namespace py::literals;
    module.def("mean_rows", &mean_rows, "table"_a.noconvert(), "ids"_a.noconvert(), "offsets"_a.noconvert(),
               "out"_a.noconvert(), "normalized"_a, "threads"_a,
               "Fill out, float32 (N, D), with means of rows of table, float32 (V, D): row i is the mean of the rows "
               "ids[offsets[i]:offsets[i + 1]]; ids int32 (total,), offsets int64 (N + 1,).");
    module.def("mean_rows_f16", &mean_rows_f16, "table"_a.noconvert(), "ids"_a.noconvert(), "offsets"_a.noconvert(),
               "out"_a.noconvert(), "normalized"_a, "threads"_a,
               "mean_rows for a table of float16, given as uint16.");
    module.def("mean_rows_i8", &mean_rows_i8, "table"_a.noconvert(), "scales"_a.noconvert(), "ids"_a.noconvert(),
               "offsets"_a.noconvert(), "out"_a.noconvert(), "normalized"_a, "threads"_a,
               "mean_rows for a table of int8 with one float32 scale a row.");
    module.def("mean_rows_i4", &mean_rows_i4, "table"_a.noconvert(), "scales"_a.noconvert(), "ids"_a.noconvert(),
               "offsets"_a.noconvert(), "out"_a.noconvert(), "normalized"_a, "threads"_a,
               "mean_rows for a table of 4-bit integers, uint8 (V, D / 2), with one float32 scale a row: the lower four "
               "bits of byte j are component 2j, the upper four 2j + 1, both from -8 to 7.");
}

}  // namespace st_paragram
