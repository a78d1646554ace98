// SPDX-License-Identifier: MIT
#include "op_matcher.h"

namespace hw::live::runtime {

std::string Difference::text() const {
    const std::string which = "tensor " + std::to_string(tensor);
    switch (in) {
        case In::Nothing:
            return {};
        case In::Op:
            return "another op";
        case In::Count:
            return std::to_string(found) + " tensors, planned were " + std::to_string(planned);
        case In::Form:
            return which + " of another form";
        case In::Storage:
            return which + " on another storage";
        case In::Bytes:
            return which + " on a storage of " + std::to_string(found) + " bytes, planned " +
                   std::to_string(planned);
    }
    return {};
}

}  // namespace hw::live::runtime
