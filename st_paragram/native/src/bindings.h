// What the parts of the module share: checked views of numpy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>

namespace st_paragram {

namespace py = pybind11;

// C-contiguous arrays of exactly this type; nothing is ever converted, since a copy would take the results with it.
template <class T>
using Array = py::array_t<T, py::array::c_style>;

template <class T>
void check_shape(const Array<T>& array, const char* name, std::initializer_list<int64_t> shape) {
    bool same = array.ndim() == static_cast<py::ssize_t>(shape.size());
    for (size_t i = 0; same && i < shape.size(); ++i) {
        const int64_t wanted = *(shape.begin() + i);
        same = wanted < 0 || array.shape(static_cast<py::ssize_t>(i)) == wanted;
    }
    if (!same) throw std::invalid_argument(std::string(name) + " has another shape than expected");
}

void bind_gather(py::module_& module);
void bind_mean_rows(py::module_& module);
void bind_training_step(py::module_& module);
void bind_hardest_negatives(py::module_& module);
void bind_word_cache(py::module_& module);

}  // namespace st_paragram
