// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/task_queue.h"

#include <gtest/gtest.h>

#include <QStringList>
#include <QTest>
#include <QThread>
#include <semaphore>

namespace hw::viewer {
namespace {

TEST(TaskQueue, RunsElsewhereAndDeliversHere) {
    TaskQueue queue;
    QThread* ranOn = nullptr;
    QThread* deliveredOn = nullptr;
    queue.submit([&](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
        QThread* here = QThread::currentThread();
        return [&, here] { ranOn = here, deliveredOn = QThread::currentThread(); };
    });
    EXPECT_EQ(queue.pending(), 1);
    ASSERT_TRUE(QTest::qWaitFor([&] { return queue.pending() == 0; }));
    EXPECT_NE(ranOn, QThread::currentThread());
    EXPECT_EQ(deliveredOn, QThread::currentThread());
}

TEST(TaskQueue, UrgentTasksOvertakeAndStaleResultsAreDropped) {
    TaskQueue queue;
    std::binary_semaphore started{0}, go{0};
    QStringList delivered;
    bool sawCancel = false;
    const auto task = [&](const QString& name) {
        return [&, name](const TaskQueue::Cancelled&) -> TaskQueue::Delivery {
            return [&, name] { delivered << name; };
        };
    };
    queue.submit([&](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
        started.release();
        go.acquire();
        sawCancel = cancelled();
        return [&] { delivered << QStringLiteral("stale"); };
    });
    queue.submit(task(QStringLiteral("forgotten")));
    started.acquire();
    queue.cancelAll();
    EXPECT_EQ(queue.pending(), 0);
    queue.submit(task(QStringLiteral("later")));
    queue.submit(task(QStringLiteral("urgent")), true);
    go.release();
    ASSERT_TRUE(QTest::qWaitFor([&] { return queue.pending() == 0; }));
    EXPECT_TRUE(sawCancel);
    EXPECT_EQ(delivered, (QStringList{QStringLiteral("urgent"), QStringLiteral("later")}));
}

TEST(TaskQueue, GoesAwayWhileSomethingRuns) {
    std::binary_semaphore started{0};
    bool delivered = false;
    {
        TaskQueue queue;
        queue.submit([&](const TaskQueue::Cancelled& cancelled) -> TaskQueue::Delivery {
            started.release();
            while (!cancelled()) QThread::yieldCurrentThread();
            return [&] { delivered = true; };
        });
        started.acquire();
    }
    QCoreApplication::processEvents();
    EXPECT_FALSE(delivered);
}

}  // namespace
}  // namespace hw::viewer
