// The Python module st_paragram.core.native._kernels.
#include "bindings.h"
#include "loops.h"
#include "threads.h"

// setup.py defines the mark of the sources; kernels compiled in another way fit no other copy of the package.
#ifndef ST_PARAGRAM_SOURCES
#define ST_PARAGRAM_SOURCES unknown
#endif
#define ST_PARAGRAM_TEXT(name) #name
#define ST_PARAGRAM_TEXT_OF(macro) ST_PARAGRAM_TEXT(macro)

namespace st_paragram {

// `other_copies.py` looks for it in the file. With external linkage it is there as a whole; the compiler may spread a
// literal over several instructions.
extern const char kSources[];
const char kSources[] = ST_PARAGRAM_TEXT_OF(ST_PARAGRAM_SOURCES);

namespace {

constexpr const char* kNoMemory =
    "not enough memory for the compiled kernels; work on smaller batches, or allow this process more memory";

// Exceptions of our own, and those whose standard texts say nothing to a reader.
void translate_exceptions(py::module_& module) {
    module.attr("SettingsError") = py::module_::import("st_paragram.errors").attr("SettingsError");
    static PyObject* const settings_error = py::object(module.attr("SettingsError")).release().ptr();
    py::register_local_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const SettingsError& settings) {
            PyErr_SetString(settings_error, settings.what());
        } catch (const std::bad_alloc&) {
            PyErr_SetString(PyExc_MemoryError, kNoMemory);
        } catch (const std::length_error&) {
            PyErr_SetString(PyExc_MemoryError, kNoMemory);
        }
    });
}

}  // namespace

PYBIND11_MODULE(_kernels, module) {
    module.doc() = "Compiled loops of st_paragram; use them through the modules that fall back on torch.";
    module.attr("sources") = kSources;
    module.attr("interface") = 7;  // as `INTERFACE` in `st_paragram/core/native/__init__.py`
    ready_to_throw();
    translate_exceptions(module);
    module.def("instructions", [] { return loops().name; }, "Instruction set of the loops: generic, avx2 or avx512.");
    module.def("has_byte_products", [] { return loops().products != nullptr; },
               "Whether 8-bit products are faster than 32-bit ones here.");
    module.def("try_threads", &try_threads, py::arg("threads"), py::call_guard<py::gil_scoped_release>(),
               "Start threads and end them again.");
    bind_candidates(module);
    bind_gather(module);
    bind_mean_rows(module);
    bind_training_step(module);
    bind_hardest_negatives(module);
    bind_word_cache(module);
}

}  // namespace st_paragram
