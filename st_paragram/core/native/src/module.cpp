// The Python module st_paragram.core.native._kernels.
#include "bindings.h"
#include "loops.h"

namespace st_paragram {
namespace {

// Our exceptions, and standard exceptions whose texts do not help users.
void translate_exceptions() {
    static PyObject* const settings_error =
        py::object(py::module_::import("st_paragram.errors").attr("SettingsError")).release().ptr();
    py::register_local_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const SettingsError& settings) {
            PyErr_SetString(settings_error, settings.what());
        } catch (const std::bad_alloc&) {
            PyErr_SetString(PyExc_MemoryError, "not enough memory for the compiled kernels; work on smaller batches");
        }
    });
}

}  // namespace

PYBIND11_MODULE(_kernels, module) {
    module.doc() = "Compiled loops of st_paragram; use them through the modules that fall back on torch.";
    module.attr("interface") = 11;  // as `INTERFACE` in `st_paragram/core/native/__init__.py`
    translate_exceptions();
    module.def("instructions", [] { return loops().name; }, "Instruction set of the loops: generic, avx2 or avx512.");
    module.def("has_byte_products", [] { return loops().products != nullptr; },
               "Whether 8-bit products are faster than 32-bit ones here.");
    bind_candidates(module);
    bind_gather(module);
    bind_mean_rows(module);
    bind_training_step(module);
    bind_hardest_negatives(module);
    bind_word_cache(module);
}

}  // namespace st_paragram
