// SPDX-License-Identifier: GPL-3.0-or-later
// A real training process that knows nothing of Highwater, for tests that record it, and what a
// person reads meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <QFile>
#include <QLabel>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "viewer/models/tool.h"

namespace hw::viewer::samples {

inline constexpr const char* kTraining = R"(
import time, torch
torch.manual_seed(0)
torch.set_num_threads(1)
layers = [part for _ in range(8) for part in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
model = torch.nn.Sequential(*layers, torch.nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1000000):
    optimizer.zero_grad()
    model(torch.randn(1024, 64)).pow(2).mean().backward()
    optimizer.step()
    print(step, flush=True)
    time.sleep(0.02)
)";

class Training {
public:
    ~Training() { end(); }

    /// Writes and starts the script; true when it has trained its first steps.
    bool start() {
        QFile script(folder_.filePath(QStringLiteral("train.py")));
        if (!script.open(QIODevice::WriteOnly)) return false;
        script.write(kTraining);
        script.close();
        process_.setProcessChannelMode(QProcess::MergedChannels);
        process_.start(QStringLiteral("/usr/bin/python3"), {script.fileName()});
        QByteArray said;
        return QTest::qWaitFor(
                   [&] {
                       said += process_.readAll();
                       return said.contains("2\n") || process_.state() == QProcess::NotRunning;
                   },
                   120'000) &&
               process_.state() == QProcess::Running;
    }
    void end() {
        process_.kill();
        process_.waitForFinished(5000);
    }
    /// True when it has taken further steps.
    bool goesOn() {
        process_.readAll();
        QByteArray said;
        return QTest::qWaitFor(
            [&] {
                said += process_.readAll();
                return said.count('\n') >= 3;
            },
            120'000);
    }
    bool running() const { return process_.state() == QProcess::Running; }
    qint64 pid() const { return process_.processId(); }
    QString folder() const { return folder_.path(); }

private:
    QTemporaryDir folder_;
    QProcess process_;
};

/// Empty where training can be recorded here, otherwise what is missing.
inline QString missingForTraining() {
    if (!QFile::exists(toolProgram()))
        return QStringLiteral(
            "highwater is not built: cmake --build build/release --target "
            "highwater highwater_agent");
    QProcess torch;
    torch.start(QStringLiteral("/usr/bin/python3"),
                {QStringLiteral("-c"), QStringLiteral("import importlib.util as u, sys; "
                                                      "sys.exit(u.find_spec('torch') is None)")});
    torch.waitForFinished(60'000);
    return torch.exitStatus() == QProcess::NormalExit && torch.exitCode() == 0
               ? QString()
               : QStringLiteral("/usr/bin/python3 has no torch: apt-get install python3-torch");
}

/// Of the label of that name, if it can be seen.
inline QString shownText(const QWidget& window, const char* name) {
    const auto* label = window.findChild<QLabel*>(QLatin1String(name));
    return label->isVisible() ? label->text() : QString();
}

/// Tests with such a process, one for all of them; skipped where nothing can be recorded.
template <class Base = ::testing::Test>
class WithTraining : public Base {
protected:
    static void SetUpTestSuite() {
        missing_ = missingForTraining();
        if (missing_.isEmpty()) training_ = std::make_unique<Training>();
        if (training_ && !training_->start()) training_.reset();
    }
    static void TearDownTestSuite() { training_.reset(); }
    void SetUp() override {
        if (!missing_.isEmpty()) GTEST_SKIP() << missing_.toStdString();
        ASSERT_TRUE(training_) << "the training does not start, or cannot be recorded";
        Base::SetUp();
    }
    static inline QString missing_;
    static inline std::unique_ptr<Training> training_;  // null: skipped, or it has failed
};

}  // namespace hw::viewer::samples

#define HW_NEED_TRAINING()                                                                     \
    if (const QString missing = hw::viewer::samples::missingForTraining(); !missing.isEmpty()) \
    GTEST_SKIP() << missing.toStdString()
