// The Python module st_paragram.native._kernels.
#include "bindings.h"
#include "loops.h"

namespace st_paragram {

PYBIND11_MODULE(_kernels, module) {
    module.doc() = "Compiled loops of st_paragram; use them through the modules that fall back on torch.";
    module.attr("interface") = 2;  // as `INTERFACE` in `st_paragram/native/__init__.py`
    module.def("instructions", [] { return loops().name; }, "Instruction set of the loops: generic, avx2 or avx512.");
    module.def("has_byte_products", [] { return loops().products != nullptr; },
               "Whether 8-bit products are faster than 32-bit ones here.");
    bind_gather(module);
    bind_mean_rows(module);
    bind_training_step(module);
    bind_hardest_negatives(module);
    bind_word_cache(module);
}

}  // namespace st_paragram
