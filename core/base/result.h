// SPDX-License-Identifier: MIT
// Errors at module borders: a value or an Error that says what happened and what to do.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace hw::core {

/// The numbers are the exit codes of the command line.
enum class ErrorCode {
    Internal = 1,      // a fault of ours
    Usage = 2,         // the command line is wrong
    NoPlan = 3,        // no plan fits the budget
    BadInput = 4,      // unreadable or foreign input
    Target = 5,        // the process to record could not be used
    Verification = 6,  // a plan or a run did not hold
};

struct Error {
    ErrorCode code = ErrorCode::Internal;
    std::string what;  // one line: what happened
    std::string hint;  // one line: what to do about it; may be empty
};

/// A value of type T or an Error.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : content_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
    Result(Error error) : content_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

    explicit operator bool() const { return std::holds_alternative<T>(content_); }
    T& operator*() & { return std::get<T>(content_); }
    const T& operator*() const& { return std::get<T>(content_); }
    T&& operator*() && { return std::get<T>(std::move(content_)); }
    T* operator->() { return &std::get<T>(content_); }
    const T* operator->() const { return &std::get<T>(content_); }
    const Error& error() const { return std::get<Error>(content_); }

private:
    std::variant<T, Error> content_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error)
        : error_(std::move(error)), ok_(false) {}  // NOLINT(google-explicit-constructor)

    explicit operator bool() const { return ok_; }
    const Error& error() const { return error_; }

private:
    Error error_;
    bool ok_ = true;
};

using Status = Result<void>;

/// Leaves the function with the error of `expression`, a Status or a Result, where it has one.
#define HW_TRY(expression)                                                   \
    do {                                                                     \
        if (auto&& hwTried = (expression); !hwTried) return hwTried.error(); \
    } while (false)

inline Error badInput(std::string what, std::string hint = {}) {
    return {ErrorCode::BadInput, std::move(what), std::move(hint)};
}

}  // namespace hw::core
