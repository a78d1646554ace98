// SPDX-License-Identifier: GPL-3.0-or-later
// A worker thread for what takes long, so that the window never waits. Each owner has queues of its
// own, so that short tasks do not wait behind long ones.
#pragma once

#include <QObject>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace hw::viewer {

/// Runs tasks one after another on its own thread and brings their results back to the thread of
/// the queue. Requests carry a generation; results of an older generation are dropped.
class TaskQueue : public QObject {
    Q_OBJECT
public:
    /// Asked by a task: true when its result is no longer wanted.
    using Cancelled = std::function<bool()>;
    /// What to do with the result; runs on the queue's own (the window's) thread.
    using Delivery = std::function<void()>;
    using Task = std::function<Delivery(const Cancelled&)>;

    /// Background work, and the threads that it starts, leaves the processor to whatever else wants
    /// it.
    enum class Priority { Normal, Background };
    explicit TaskQueue(Priority priority = Priority::Normal, QObject* parent = nullptr);
    ~TaskQueue() override;  // cancels what runs and waits for it

    /// Urgent tasks overtake all that wait.
    void submit(Task task, bool urgent = false);
    /// Forgets waiting tasks, cancels the running one and drops its result.
    void cancelAll();
    /// Tasks that wait or run; 0 when idle.
    int pending() const;

signals:
    void pendingChanged(int pending);

private:
    struct Request {
        Task task;
        std::uint64_t generation;
    };
    void work(Priority priority);
    void deliver(std::uint64_t generation, const Delivery& delivery);

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Request> waiting_;
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<bool> stop_{false};
    int open_ = 0;  // submitted and not delivered; of the owner's thread
    std::thread thread_;
};

}  // namespace hw::viewer
