// SPDX-License-Identifier: MIT
#include "profiler/attach/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hw::profiler {
namespace {

/// A file's bytes, mapped; every access is checked: it may be anything.
class Image {
public:
    explicit Image(const std::string& path) {
        const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat about {};
        if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0) {
            size_ = static_cast<std::size_t>(about.st_size);
            void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
            if (memory != MAP_FAILED) data_ = static_cast<const char*>(memory);
        }
        if (file >= 0) close(file);
    }
    ~Image() {
        if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
    }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

    template <class T>
    std::optional<T> read(std::uint64_t offset) const {
        if (data_ == nullptr || offset > size_ || size_ - offset < sizeof(T)) return std::nullopt;
        T value;
        std::memcpy(&value, data_ + offset, sizeof(T));
        return value;
    }
    bool isText(std::uint64_t offset, const char* text) const {
        const std::size_t length = std::strlen(text) + 1;
        return offset <= size_ && size_ - offset >= length &&
               std::memcmp(data_ + offset, text, length) == 0;
    }
    /// What there is of that range.
    std::string_view part(std::uint64_t offset, std::uint64_t size) const {
        if (data_ == nullptr || offset > size_) return {};
        return {data_ + offset, std::min<std::uint64_t>(size, size_ - offset)};
    }

private:
    const char* data_ = nullptr;
    std::size_t size_ = 0;
};

std::optional<Elf64_Ehdr> headerOf(const Image& image) {
    auto header = image.read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64)
        return std::nullopt;
    return header;
}

/// What is added to an address of the file to get one of the process.
std::optional<std::uint64_t> loadBias(const Image& image, const Elf64_Ehdr& header,
                                      std::uint64_t start) {
    for (int i = 0; i < header.e_phnum; ++i) {
        const auto segment = image.read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
        if (!segment) return std::nullopt;
        if (segment->p_type == PT_LOAD && segment->p_offset == 0) return start - segment->p_vaddr;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::uint64_t>> functionAddresses(const std::string& file,
                                                            std::uint64_t start,
                                                            std::span<const char* const> names) {
    const Image image(file);
    const auto header = headerOf(image);
    if (!header) return std::nullopt;
    const auto bias = loadBias(image, *header, start);
    if (!bias) return std::nullopt;
    std::vector<std::uint64_t> addresses(names.size(), 0);
    for (int i = 0; i < header->e_shnum; ++i) {
        const auto section = image.read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
        if (!section) return std::nullopt;
        if (section->sh_type != SHT_DYNSYM) continue;
        const auto strings =
            image.read<Elf64_Shdr>(header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
        if (!strings) return std::nullopt;
        for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section->sh_size;
             at += sizeof(Elf64_Sym)) {
            const auto symbol = image.read<Elf64_Sym>(section->sh_offset + at);
            if (!symbol) return std::nullopt;
            if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
                continue;
            for (std::size_t n = 0; n < names.size(); ++n)
                if (addresses[n] == 0 &&
                    image.isText(strings->sh_offset + symbol->st_name, names[n]))
                    addresses[n] = *bias + symbol->st_value;
        }
    }
    return addresses;
}

std::optional<std::uint64_t> codeAddress(const std::string& file, std::uint64_t start,
                                         std::string_view code) {
    const Image image(file);
    const auto header = headerOf(image);
    const auto bias = header ? loadBias(image, *header, start) : std::nullopt;
    if (!bias) return std::nullopt;
    for (int i = 0; i < header->e_phnum; ++i) {
        const auto segment = image.read<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr));
        if (!segment) return std::nullopt;
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0) continue;
        const std::size_t at = image.part(segment->p_offset, segment->p_filesz).find(code);
        if (at != std::string_view::npos) return *bias + segment->p_vaddr + at;
    }
    return std::nullopt;
}

}  // namespace hw::profiler
