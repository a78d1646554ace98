// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/task_queue.h"

#include <sys/resource.h>

#include <QMetaObject>

namespace hw::viewer {

TaskQueue::TaskQueue(Priority priority, QObject* parent)
    : QObject(parent), thread_([this, priority] { work(priority); }) {}

TaskQueue::~TaskQueue() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        ++generation_;
        waiting_.clear();
    }
    wake_.notify_one();
    thread_.join();
}

void TaskQueue::submit(Task task, bool urgent) {
    {
        const std::lock_guard lock(mutex_);
        Request request{std::move(task), generation_};
        if (urgent)
            waiting_.push_front(std::move(request));
        else
            waiting_.push_back(std::move(request));
    }
    wake_.notify_one();
    emit pendingChanged(++open_);
}

void TaskQueue::cancelAll() {
    {
        const std::lock_guard lock(mutex_);
        ++generation_;
        waiting_.clear();
    }
    open_ = 0;
    emit pendingChanged(0);
}

int TaskQueue::pending() const {
    return open_;
}

void TaskQueue::work(Priority priority) {
    constexpr int kNicer = 4;  // on Linux of the calling thread only
    if (priority == Priority::Background) setpriority(PRIO_PROCESS, 0, kNicer);
    while (true) {
        Request request;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
            if (stop_) return;
            request = std::move(waiting_.front());
            waiting_.pop_front();
        }
        const std::uint64_t generation = request.generation;
        Delivery delivery =
            request.task([this, generation] { return stop_ || generation_ != generation; });
        // Queued to the owner's thread; Qt drops it when the owner is gone.
        QMetaObject::invokeMethod(
            this, [this, generation, delivery] { deliver(generation, delivery); },
            Qt::QueuedConnection);
    }
}

void TaskQueue::deliver(std::uint64_t generation, const Delivery& delivery) {
    if (generation != generation_) return;
    --open_;
    if (delivery) delivery();
    emit pendingChanged(open_);
}

}  // namespace hw::viewer
