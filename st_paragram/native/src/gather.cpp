// Sentences out of a store's ids, for PairStore.take in st_paragram/data/pair_store/reader.py.
#include "bindings.h"

namespace st_paragram {
namespace {

// Copy sentences out of a store's ids: the map may lie on a slow disk, so other threads run meanwhile.
template <class Id>
void gather(const Array<Id>& ids, const Array<int64_t>& begins, const Array<int64_t>& offsets, Array<int32_t>& out) {
    const int64_t n = begins.shape(0);
    if (offsets.shape(0) != n + 1 || (n > 0 && (offsets.data()[0] != 0 || offsets.data()[n] != out.shape(0)))) {
        throw std::invalid_argument("offsets do not fit");
    }
    const Id* from = ids.data();
    const int64_t *begin = begins.data(), *offset = offsets.data(), total = ids.shape(0);
    int32_t* to = out.mutable_data();
    for (int64_t i = 0; i < n; ++i) {
        const int64_t count = offset[i + 1] - offset[i];
        if (count < 0 || begin[i] < 0 || begin[i] > total - count) throw std::invalid_argument("a sentence outside ids");
    }
    py::gil_scoped_release release;
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t k = offset[i]; k < offset[i + 1]; ++k) to[k] = static_cast<int32_t>(from[begin[i] + k - offset[i]]);
    }
}

}  // namespace

void bind_gather(py::module_& module) {
    using namespace py::literals;
    const auto name = "gather";
    const auto doc = "Fill out, int32 (total,), with sentences of a store: sentence i begins at ids[begins[i]].";
    module.def(name, &gather<uint8_t>, "ids"_a.noconvert(), "begins"_a, "offsets"_a, "out"_a.noconvert(), doc);
    module.def(name, &gather<uint16_t>, "ids"_a.noconvert(), "begins"_a, "offsets"_a, "out"_a.noconvert(), doc);
    module.def(name, &gather<uint32_t>, "ids"_a.noconvert(), "begins"_a, "offsets"_a, "out"_a.noconvert(), doc);
}

}  // namespace st_paragram
