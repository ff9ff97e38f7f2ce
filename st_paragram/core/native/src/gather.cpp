// Copies sentences from a store's ids, for PairStore.take in st_paragram/core/pair_store.
#include "bindings.h"

#include <cstring>

namespace st_paragram {
namespace {

// Copy sentences from a store's ids, without the GIL, since the memory map may be on a slow disk. The file determines
// where the ids begin in memory, so they need not be aligned.
template <class Id>
void gather(const Array<Id>& ids, const Array<int64_t>& begins, const Array<int64_t>& offsets, Array<int32_t>& out) {
    if (ids.ndim() != 1) throw refusal("ids", "has another shape than expected");
    check_shape(begins, "begins", {-1});
    check_shape(offsets, "offsets", {-1});
    check_shape(out, "out", {-1});
    const int64_t n = begins.shape(0);
    const int64_t *begin = begins.data(), *offset = offsets.data(), total = ids.shape(0);
    if (offsets.shape(0) != n + 1 || offset[0] != 0 || offset[n] != out.shape(0)) {
        throw std::invalid_argument("offsets do not fit");
    }
    for (int64_t i = 0; i < n; ++i) {
        const bool grows = offset[i] <= offset[i + 1];
        if (!grows || begin[i] < 0 || begin[i] > total - (offset[i + 1] - offset[i])) {
            throw std::invalid_argument("a sentence outside ids");
        }
    }
    const char* from = static_cast<const char*>(static_cast<const py::array&>(ids).data());
    int32_t* to = writable(out, "out", ids, begins, offsets);
    py::gil_scoped_release release;
    for (int64_t i = 0; i < n; ++i) {
        const char* at = from + begin[i] * static_cast<int64_t>(sizeof(Id));
        for (int64_t k = offset[i]; k < offset[i + 1]; ++k, at += sizeof(Id)) {
            Id id;
            std::memcpy(&id, at, sizeof(Id));
            to[k] = static_cast<int32_t>(id);
        }
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
