// Means of table rows: sentence embeddings.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace st_paragram {
namespace {

constexpr int64_t kGrain = 16;  // sentences per piece for a thread

void check_ids(const Array<int32_t>& ids, const Array<int64_t>& offsets, int64_t rows) {
    check_shape(ids, "ids", {-1});
    check_shape(offsets, "offsets", {-1});
    const int64_t* o = offsets.data();
    const int64_t n = offsets.shape(0) - 1;
    bool good = n >= 0 && o[0] == 0 && o[n] == ids.shape(0);
    for (int64_t i = 0; good && i < n; ++i) good = o[i] <= o[i + 1];
    if (!good) throw std::invalid_argument("offsets do not grow from 0 to the number of ids");
    uint32_t largest = 0;
    const int32_t* id = ids.data();
    for (int64_t i = 0; i < ids.shape(0); ++i) {
        const uint32_t value = static_cast<uint32_t>(id[i]);  // a negative id becomes larger than any table
        largest = value > largest ? value : largest;
    }
    if (ids.shape(0) > 0 && static_cast<int64_t>(largest) >= std::min(rows, int64_t{INT32_MAX} + 1)) {
        throw std::invalid_argument("id " + std::to_string(static_cast<int32_t>(largest)) + " is not a row of the table");
    }
}

// Means by one of the loops. Without scales (one per row), return whether they are finite. A number of the table holds
// `kPerCell` dimensions.
template <auto kMean, int64_t kPerCell, class Number, class... Scales>
bool mean_rows(const Array<Number>& table, const Scales&... scales, const Array<int32_t>& ids,
               const Array<int64_t>& offsets, Array<float>& out, bool normalized, int threads) {
    check_shape(table, "table", {-1, -1});
    (check_shape(scales, "scales", {table.shape(0)}), ...);
    check_ids(ids, offsets, table.shape(0));
    const int64_t n = offsets.shape(0) - 1, dim = kPerCell * table.shape(1);
    check_shape(out, "out", {n, dim});
    float* result = writable(out, "out", table, scales..., ids, offsets);
    const Number* rows = table.data();
    const int32_t* id = ids.data();
    const int64_t* o = offsets.data();
    const auto mean = loops().*kMean;
    std::atomic<bool> finite{true};
    const py::gil_scoped_release release;
    parallel_for(n, kGrain, threads, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
            mean(rows, scales.data()..., dim, id + o[i], o[i + 1] - o[i], result + i * dim);
            if (normalized) loops().normalize(result + i * dim, dim);
            if (sizeof...(Scales) == 0 && !loops().is_finite(result + i * dim, dim)) finite = false;
        }
    });
    return finite;
}

}  // namespace

void bind_mean_rows(py::module_& module) {
    using namespace py::literals;
    const auto table = "table"_a.noconvert(), scales = "scales"_a.noconvert(), ids = "ids"_a.noconvert();
    const auto offsets = "offsets"_a.noconvert(), out = "out"_a.noconvert();
    module.def("mean_rows", &mean_rows<&Loops::mean_f32, 1, float>, table, ids, offsets, out, "normalized"_a, "threads"_a,
               "Fill out, float32 (N, D), with means of rows of table, float32 (V, D): row i is the mean of the rows "
               "ids[offsets[i]:offsets[i + 1]]; ids int32 (total,), offsets int64 (N + 1,). Returns whether all are finite, "
               "which is looked at without scales only.");
    module.def("mean_rows_f16", &mean_rows<&Loops::mean_f16, 1, uint16_t>, table, ids, offsets, out, "normalized"_a,
               "threads"_a, "mean_rows for a table of float16, given as uint16.");
    module.def("mean_rows_i8", &mean_rows<&Loops::mean_i8, 1, int8_t, Array<float>>, table, scales, ids, offsets, out,
               "normalized"_a, "threads"_a, "mean_rows for a table of int8 with one float32 scale a row.");
    module.def("mean_rows_i4", &mean_rows<&Loops::mean_i4, 2, uint8_t, Array<float>>, table, scales, ids, offsets, out,
               "normalized"_a, "threads"_a,
               "mean_rows for a table of 4-bit integers, uint8 (V, D / 2), with one float32 scale a row: the lower four "
               "bits of byte j are component 2j, the upper four 2j + 1, both from -8 to 7.");
}

}  // namespace st_paragram
