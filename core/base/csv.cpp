// SPDX-License-Identifier: MIT
#include "core/base/csv.h"

namespace hw::core {

void appendCsv(std::string& line, std::string_view field) {
    if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
        line += field;
        return;
    }
    line += '"';
    for (const char c : field) line.append(c == '"' ? 2 : 1, c);
    line += '"';
}

}  // namespace hw::core
