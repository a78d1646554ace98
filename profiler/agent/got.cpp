// SPDX-License-Identifier: MIT
#include "profiler/agent/got.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace hw::profiler::agent {
namespace {

struct Request {
    Libraries libraries;
    const char* symbol;
    std::span<void* const> from;
    void* to;
    int patched;
};

struct Range {
    ElfW(Addr) begin = 0, end = 0;
    bool holds(ElfW(Addr) address) const { return address >= begin && address < end; }
};

/// Stores through a page that the loader may have made read-only after relocation, and puts the
/// protection back as it was: read-only inside `relro`, writable elsewhere.
bool storeSlot(void** slot, void* value, const Range& relro) {
    const auto pageBytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(slot);
    void* page = reinterpret_cast<void*>(address & ~(pageBytes - 1));
    if (mprotect(page, pageBytes, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(slot, value, __ATOMIC_SEQ_CST);
    if (relro.holds(address)) mprotect(page, pageBytes, PROT_READ);
    return true;
}

void patchTable(const ElfW(Rela) * table, std::size_t count, const dl_phdr_info& info,
                const ElfW(Sym) * symbols, const char* names, const Range& relro,
                Request& request) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto type = ELF64_R_TYPE(table[i].r_info);
        if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
        const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(table[i].r_info)];
        if (strcmp(names + symbol.st_name, request.symbol) != 0) continue;
        auto** slot = reinterpret_cast<void**>(info.dlpi_addr + table[i].r_offset);
        if (*slot == request.to) {
            ++request.patched;
            continue;
        }
        // A lazily bound slot still points into its own library.
        bool resolved = false;
        for (void* address : request.from) resolved = resolved || *slot == address;
        bool unresolved = false;
        for (int p = 0; p < info.dlpi_phnum && !resolved; ++p) {
            const ElfW(Phdr)& header = info.dlpi_phdr[p];
            const Range segment{info.dlpi_addr + header.p_vaddr,
                                info.dlpi_addr + header.p_vaddr + header.p_memsz};
            unresolved = unresolved || (header.p_type == PT_LOAD &&
                                        segment.holds(reinterpret_cast<ElfW(Addr)>(*slot)));
        }
        if ((resolved || unresolved) && storeSlot(slot, request.to, relro)) ++request.patched;
    }
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
    auto& request = *static_cast<Request*>(data);
    const char* slash = strrchr(info->dlpi_name, '/');
    const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
    const Libraries& wanted = request.libraries;
    const bool named = strncmp(file, wanted.prefix, strlen(wanted.prefix)) == 0;
    if (named == wanted.others) return 0;

    const ElfW(Dyn)* dynamic = nullptr;
    Range relro;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        const ElfW(Addr) begin = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
        if (header.p_type == PT_GNU_RELRO) relro = {begin, begin + header.p_memsz};
    }
    if (dynamic == nullptr) return 0;

    const ElfW(Sym)* symbols = nullptr;
    const char* names = nullptr;
    const ElfW(Rela)* plain = nullptr;
    const ElfW(Rela)* plt = nullptr;
    std::size_t plainBytes = 0, pltBytes = 0;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        const auto value = dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
            case DT_SYMTAB:
                symbols = reinterpret_cast<const ElfW(Sym)*>(value);
                break;
            case DT_STRTAB:
                names = reinterpret_cast<const char*>(value);
                break;
            case DT_RELA:
                plain = reinterpret_cast<const ElfW(Rela)*>(value);
                break;
            case DT_RELASZ:
                plainBytes = value;
                break;
            case DT_JMPREL:
                plt = reinterpret_cast<const ElfW(Rela)*>(value);
                break;
            case DT_PLTRELSZ:
                pltBytes = value;
                break;
            default:
                break;
        }
    }
    if (symbols == nullptr || names == nullptr) return 0;
    if (plain != nullptr)
        patchTable(plain, plainBytes / sizeof(ElfW(Rela)), *info, symbols, names, relro, request);
    if (plt != nullptr)
        patchTable(plt, pltBytes / sizeof(ElfW(Rela)), *info, symbols, names, relro, request);
    return 0;
}

}  // namespace

int patchSlots(Libraries libraries, const char* symbol, std::span<void* const> from, void* to) {
    Request request{libraries, symbol, from, to, 0};
    dl_iterate_phdr(&visit, &request);
    return request.patched;
}

}  // namespace hw::profiler::agent
