// SPDX-License-Identifier: MIT
#include "core/import/text_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

namespace hw::core {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;

}  // namespace

void TextSource::Closer::operator()(void* file) const {
    gzclose(static_cast<gzFile>(file));
}

Result<TextSource> TextSource::open(const std::string& path) {
    std::error_code failure;
    if (!std::filesystem::exists(path, failure))
        return badInput("there is no file '" + path + "'", "check the path");
    if (std::filesystem::is_directory(path, failure))
        return badInput("'" + path + "' is a folder", "name a file in it");
    if (std::filesystem::file_size(path, failure) == 0 && !failure)
        return badInput("'" + path + "' is empty", "record or export it again");
    TextSource source;
    source.file_.reset(gzopen(path.c_str(), "rb"));
    if (!source.file_) return badInput("cannot read '" + path + "'", "check its permissions");
    gzbuffer(static_cast<gzFile>(source.file_.get()), 1u << 17);
    return source;
}

bool TextSource::next(std::string& line) {
    line.clear();
    auto* file = static_cast<gzFile>(file_.get());
    std::array<char, 8192> part{};
    while (gzgets(file, part.data(), static_cast<int>(part.size())) != nullptr) {
        line += part.data();
        if (line.size() > kLongestLine) {
            error_ = "a line is longer than 64 MiB";
            return false;
        }
        if (!line.empty() && line.back() == '\n') {
            line.pop_back();
            if (!line.empty() && line.back() == '\r') line.pop_back();
            ++lineNumber_;
            return true;
        }
    }
    noteDamage();
    if (line.empty() || !error_.empty()) return false;
    ++lineNumber_;
    return true;
}

std::size_t TextSource::read(char* to, std::size_t room) {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    const int got =
        gzread(static_cast<gzFile>(file_.get()), to, static_cast<unsigned>(std::min(room, kMost)));
    if (got > 0) return static_cast<std::size_t>(got);
    noteDamage();
    return 0;
}

void TextSource::noteDamage() {
    int code = Z_OK;
    const char* message = gzerror(static_cast<gzFile>(file_.get()), &code);
    if (code == Z_OK || code == Z_STREAM_END) return;
    error_ = code == Z_BUF_ERROR ? "the compressed data ends early" : message;
}

}  // namespace hw::core
