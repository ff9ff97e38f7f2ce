// Errors with a name of their own in Python.
#pragma once

#include <stdexcept>

namespace st_paragram {

// st_paragram.errors.SettingsError: what the caller's settings, files or machine do not allow for.
struct SettingsError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace st_paragram
