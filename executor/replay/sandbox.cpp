// SPDX-License-Identifier: MIT
#include "executor/replay/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

namespace hw::executor {
namespace {

using Filter = std::vector<sock_filter>;

constexpr std::uint32_t kFail = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kMissing = SECCOMP_RET_ERRNO | ENOSYS;
constexpr std::uint32_t kOtherAbi = 0x40000000;  // bit of the numbers of calls with 32-bit pointers

// Calls that change files or folders, reach the network, start programs, or touch other processes
// or the system. Newer than some kernels' headers: by number, the same on all architectures.
constexpr int kForbidden[] = {SYS_mq_open,
                              SYS_mq_unlink,
                              SYS_setpriority,
                              SYS_sched_setparam,
                              SYS_sched_setscheduler,
                              SYS_sched_setattr,
                              SYS_sched_setaffinity,
                              SYS_ioprio_set,
                              SYS_shmget,
                              SYS_shmat,
                              SYS_shmctl,
                              SYS_semget,
                              SYS_semop,
                              SYS_semtimedop,
                              SYS_semctl,
                              SYS_msgget,
                              SYS_msgsnd,
                              SYS_msgrcv,
                              SYS_msgctl,
                              SYS_migrate_pages,
                              SYS_move_pages,
                              SYS_kcmp,
                              SYS_rt_tgsigqueueinfo,
                              SYS_creat,
                              SYS_truncate,
                              SYS_rename,
                              SYS_renameat,
                              SYS_renameat2,
                              SYS_unlink,
                              SYS_unlinkat,
                              SYS_rmdir,
                              SYS_mkdir,
                              SYS_mkdirat,
                              SYS_mknod,
                              SYS_mknodat,
                              SYS_link,
                              SYS_linkat,
                              SYS_symlink,
                              SYS_symlinkat,
                              SYS_chmod,
                              SYS_fchmod,
                              SYS_fchmodat,
                              SYS_chown,
                              SYS_fchown,
                              SYS_lchown,
                              SYS_fchownat,
                              SYS_utime,
                              SYS_utimes,
                              SYS_futimesat,
                              SYS_utimensat,
                              SYS_setxattr,
                              SYS_lsetxattr,
                              SYS_fsetxattr,
                              SYS_removexattr,
                              SYS_lremovexattr,
                              SYS_fremovexattr,
                              SYS_open_by_handle_at,
                              SYS_socket,
                              SYS_socketpair,
                              SYS_connect,
                              SYS_bind,
                              SYS_listen,
                              SYS_accept,
                              SYS_accept4,
                              SYS_execve,
                              SYS_execveat,
                              SYS_fork,
                              SYS_vfork,
                              SYS_kill,
                              SYS_tkill,
                              SYS_rt_sigqueueinfo,
                              SYS_ptrace,
                              SYS_process_vm_readv,
                              SYS_process_vm_writev,
                              SYS_pidfd_open,
                              SYS_pidfd_send_signal,
                              SYS_mount,
                              SYS_umount2,
                              SYS_pivot_root,
                              SYS_chroot,
                              SYS_setns,
                              SYS_unshare,
                              SYS_bpf,
                              SYS_perf_event_open,
                              SYS_userfaultfd,
                              SYS_keyctl,
                              SYS_add_key,
                              SYS_request_key,
                              SYS_init_module,
                              SYS_finit_module,
                              SYS_delete_module,
                              SYS_kexec_load,
                              SYS_reboot,
                              SYS_swapon,
                              SYS_swapoff,
                              SYS_io_uring_setup,
                              SYS_quotactl,
                              SYS_acct,
                              SYS_syslog};
constexpr int kProcessMadvise = 440, kOpenTree = 428, kMoveMount = 429, kFsopen = 430,
              kPidfdGetfd = 438, kFchmodat2 = 452, kSetxattrat = 463, kRemovexattrat = 466;
constexpr int kForbiddenNewer[] = {kProcessMadvise, kOpenTree,  kMoveMount,  kFsopen,
                                   kPidfdGetfd,     kFchmodat2, kSetxattrat, kRemovexattrat};
// Their flags lie in memory, where a filter cannot read them; libraries take the older calls
// instead.
constexpr int kOpenat2 = 437, kClone3 = 435;
constexpr std::uint32_t kWriting =
    O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);

void load(Filter& filter, std::size_t offset) {
    filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}

void answer(Filter& filter, std::uint32_t what) {
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, what));
}

/// For the call of that number, which is loaded.
void answerCall(Filter& filter, int number, std::uint32_t what) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    answer(filter, what);
}

/// For the call of that number, by its argument `at`: `set` where any of these bits is set there,
/// else `unset`.
void answerByFlags(Filter& filter, int number, std::size_t at, std::uint32_t bits,
                   std::uint32_t set, std::uint32_t unset) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4));
    load(filter, offsetof(seccomp_data, args) + 8 * at);
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    answer(filter, set);
    answer(filter, unset);
}

/// For the call of that number: allowed where its first argument is this process or, if `zero`, 0.
void onlyOnUs(Filter& filter, int number, bool zero) {
    const auto us = static_cast<std::uint32_t>(getpid());
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 5));
    load(filter, offsetof(seccomp_data, args));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, us, 2, 0));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, zero ? 0 : us, 1, 0));
    answer(filter, kFail);
    answer(filter, SECCOMP_RET_ALLOW);
}

/// Characters that are put into a terminal are read as if they had been typed.
void noTyping(Filter& filter) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4));
    load(filter, offsetof(seccomp_data, args) + 8);
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 0, 1));
    answer(filter, kFail);
    answer(filter, SECCOMP_RET_ALLOW);
}

/// What is ready to be read or written would send another process a signal.
void noSignalsOfFiles(Filter& filter) {
    constexpr std::uint32_t kSetSignal = 10, kSetOwnerEx = 15;  // named in GNU's headers only
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 6));
    load(filter, offsetof(seccomp_data, args) + 8);
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETOWN, 3, 0));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSetOwnerEx, 2, 0));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSetSignal, 1, 0));
    answer(filter, SECCOMP_RET_ALLOW);
    answer(filter, kFail);
}

Filter filterFor(Device device) {
    Filter filter;
#ifdef __x86_64__
    load(filter, offsetof(seccomp_data, arch));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    answer(filter, SECCOMP_RET_KILL_PROCESS);
    load(filter, offsetof(seccomp_data, nr));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kOtherAbi, 0, 1));
    answer(filter, SECCOMP_RET_KILL_PROCESS);
    for (const int call : kForbidden) answerCall(filter, call, kFail);
    for (const int call : kForbiddenNewer) answerCall(filter, call, kFail);
    for (const int call : {kOpenat2, kClone3}) answerCall(filter, call, kMissing);
    onlyOnUs(filter, SYS_tgkill, false);
    onlyOnUs(filter, SYS_prlimit64, true);
    noTyping(filter);
    noSignalsOfFiles(filter);
    answerByFlags(filter, SYS_clone, 0, CLONE_THREAD, SECCOMP_RET_ALLOW, kFail);
    if (device == Device::Cpu) {
        answerByFlags(filter, SYS_open, 1, kWriting, kFail, SECCOMP_RET_ALLOW);
        answerByFlags(filter, SYS_openat, 2, kWriting, kFail, SECCOMP_RET_ALLOW);
    }
    answer(filter, SECCOMP_RET_ALLOW);
#endif
    return filter;
}

std::string because(const char* what) {
    return std::string(what) + ": " + std::strerror(errno);
}

}  // namespace

std::string enterSandbox(Device device) {
    Filter filter = filterFor(device);
    if (filter.empty()) return "not on this kind of processor";
    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return because("no_new_privs");
    // All threads, as libraries may have started some.
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        return because("seccomp");
    return {};
}

bool sandboxAvailable() {
    const std::uint32_t wanted = SECCOMP_RET_ERRNO;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &wanted) == 0;
}

}  // namespace hw::executor
