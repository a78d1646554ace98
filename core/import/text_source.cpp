// SPDX-License-Identifier: MIT
#include "core/import/text_source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/import/tar_member.h"

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
    source.name_ = path;
    std::array<char, 512> head{};
    const std::size_t got = source.readPacked(head.data(), head.size());
    gzrewind(static_cast<gzFile>(source.file_.get()));
    if (looksLikeTar(head.data(), got)) HW_TRY(source.openMember());
    source.error_.clear();
    return source;
}

// Goes through the archive to know that there is one file, then to that file.
Status TextSource::openMember() {
    auto* file = static_cast<gzFile>(file_.get());
    const auto member =
        onlyTarMember([this](char* to, std::size_t room) { return readPacked(to, room); });
    if (!member) return badInput("'" + name_ + "': " + member.error().what, member.error().hint);
    gzrewind(file);
    if (gzseek(file, static_cast<z_off_t>(member->offset), SEEK_SET) != member->offset)
        return badInput("'" + name_ + "': the tar archive was cut short", "copy it again");
    name_ = member->name;
    left_ = member->size;
    return {};
}

// As many bytes as there are, up to `room`.
std::size_t TextSource::readPacked(char* to, std::size_t room) {
    std::size_t filled = 0;
    while (filled < room) {
        const int got = gzread(static_cast<gzFile>(file_.get()), to + filled,
                               static_cast<unsigned>(room - filled));
        if (got <= 0) break;
        filled += static_cast<std::size_t>(got);
    }
    return filled;
}

// A line of a file in an archive ends with the file, too.
bool TextSource::nextOfMember(std::string& line) {
    std::array<char, 8192> part{};
    for (;;) {
        if (const std::size_t end = ahead_.find('\n'); end != std::string::npos) {
            line = ahead_.substr(0, end);
            ahead_.erase(0, end + 1);
            break;
        }
        if (ahead_.size() > kLongestLine) {
            error_ = "a line is longer than 64 MiB";
            return false;
        }
        const std::size_t got = read(part.data(), part.size());
        if (got == 0) {
            if (ahead_.empty() || !error_.empty()) return false;
            line = std::exchange(ahead_, {});
            break;
        }
        ahead_.append(part.data(), got);
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    ++lineNumber_;
    return true;
}

bool TextSource::next(std::string& line) {
    line.clear();
    if (left_) return nextOfMember(line);
    auto* file = static_cast<gzFile>(file_.get());
    std::array<char, 8192> part{};
    const auto begin = gztell(file);
    while (gzgets(file, part.data(), static_cast<int>(part.size())) != nullptr) {
        line += part.data();
        // By what was read: a text of zeros, as from a device, adds nothing.
        if (gztell(file) - begin > static_cast<z_off_t>(kLongestLine)) {
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
    if (left_) room = std::min(room, static_cast<std::size_t>(*left_));
    if (room == 0) return 0;
    const int got =
        gzread(static_cast<gzFile>(file_.get()), to, static_cast<unsigned>(std::min(room, kMost)));
    if (got > 0) {
        if (left_) *left_ -= got;
        return static_cast<std::size_t>(got);
    }
    noteDamage();
    if (left_ && *left_ > 0 && error_.empty()) error_ = "the tar archive was cut short";
    return 0;
}

void TextSource::noteDamage() {
    int code = Z_OK;
    const char* message = gzerror(static_cast<gzFile>(file_.get()), &code);
    if (code == Z_OK || code == Z_STREAM_END) return;
    error_ = code == Z_BUF_ERROR ? "the compressed data ends early" : message;
}

}  // namespace hw::core
