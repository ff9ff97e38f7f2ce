// Shared by the parts of the module: checked views of numpy arrays.
#pragma once

#include "threads.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

namespace st_paragram {

namespace py = pybind11;

// C-contiguous arrays of exactly this type; nothing is converted, since results would be lost in a copy.
template <class T>
using Array = py::array_t<T, py::array::c_style>;

inline std::invalid_argument refusal(const char* name, const char* what) {
    return std::invalid_argument(std::string(name) + " " + what);
}

// Refuse an array with another shape (-1: any size), or with numbers that are not aligned for the processor.
template <class T>
void check_shape(const Array<T>& array, const char* name, std::initializer_list<int64_t> shape) {
    bool same = array.ndim() == static_cast<py::ssize_t>(shape.size());
    for (size_t i = 0; same && i < shape.size(); ++i) {
        const int64_t wanted = *(shape.begin() + i);
        same = wanted < 0 || array.shape(static_cast<py::ssize_t>(i)) == wanted;
    }
    if (!same) throw refusal(name, "has another shape than expected");
    if (reinterpret_cast<uintptr_t>(array.data()) % alignof(T) != 0) throw refusal(name, "is not aligned");
}

inline bool overlap(const py::array& a, const py::array& b) {
    const auto *first = static_cast<const char*>(a.data()), *second = static_cast<const char*>(b.data());
    return a.nbytes() > 0 && b.nbytes() > 0 && first < second + b.nbytes() && second < first + a.nbytes();
}

// The numbers of an array that is written while others are read. It must be writable and must not overlap them: results
// written over checked ids would be used as ids.
template <class T, class... Others>
T* writable(Array<T>& array, const char* name, const Others&... others) {
    if (!array.writeable()) throw refusal(name, "is read-only");
    if ((overlap(array, others) || ...)) throw refusal(name, "shares its memory with another array");
    return array.mutable_data();
}

void bind_candidates(py::module_& module);
void bind_gather(py::module_& module);
void bind_mean_rows(py::module_& module);
void bind_training_step(py::module_& module);
void bind_hardest_negatives(py::module_& module);
void bind_word_cache(py::module_& module);

}  // namespace st_paragram
