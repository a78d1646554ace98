// SPDX-License-Identifier: MIT
#include "executor/replay/allowed_ops.h"

#include <algorithm>
#include <set>

namespace hw::executor {
namespace {

constexpr const char* kInstead =
    "`highwater train` runs plans in the program itself; a plan for the session can be made and "
    "checked without running it";

/// Of the framework's own: what trusts indices, or prints what it is told. Views that check nothing
/// are allowed, since each result is held against its storage before the next op.
const std::set<std::string>& reachingBeyond() {
    static const std::set<std::string> names{"aten::_print",
                                             "aten::_sparse_coo_tensor_unsafe",
                                             "aten::_sparse_compressed_tensor_unsafe",
                                             "aten::_sparse_csr_tensor_unsafe",
                                             "aten::_sparse_csc_tensor_unsafe",
                                             "aten::_sparse_bsr_tensor_unsafe",
                                             "aten::_sparse_bsc_tensor_unsafe",
                                             "aten::_nested_view_from_buffer",
                                             "aten::_nested_view_from_buffer_copy",
                                             "aten::_nested_view_from_jagged",
                                             "aten::_nested_view_from_jagged_copy"};
    return names;
}

bool namesFile(const std::string& argument) {
    return argument.find("file") != std::string::npos || argument.find("path") != std::string::npos;
}

}  // namespace

core::Status requireAllowed(const std::string& op, const std::vector<std::string>& arguments) {
    const std::size_t colons = op.find("::");
    const std::string space = colons == std::string::npos ? "" : op.substr(0, colons);
    if (space == "profiler") return {};  // marks in a trace; skipped
    if (space != "aten")
        return core::badInput(
            op + " is an op of an extension, which is not loaded",
            "if you trust the Python module that has it, load it: --import "
            "MODULE; or `highwater train`, which runs plans in the program itself");
    if (reachingBeyond().contains(op) || std::any_of(arguments.begin(), arguments.end(), namesFile))
        return core::badInput(
            op + " reaches files or memory beyond its arguments, and is not replayed", kInstead);
    return {};
}

}  // namespace hw::executor
