// SPDX-License-Identifier: GPL-3.0-or-later
// Training under a plan or within a budget from the window: a `highwater train` or `highwater
// apply` of its own, so that neither the end of the window nor that of the tool takes the training
// along.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTemporaryDir>
#include <QTimer>
#include <memory>
#include <optional>

#include "viewer/models/document.h"
#include "viewer/models/growing_file.h"
#include "viewer/models/live_progress.h"

namespace hw::viewer {

/// A plan, and the recorded step that it is for.
struct PlannedStep {
    QString session;
    qint64 step = 0;
    PlanPointer plan;
};

/// What holds without the plan of a session.
struct LiveTerms {
    std::optional<core::Bytes> budget;  // none: DTR waits for an allocation that fails
    QString planner;                    // whose plan takes over within a budget, or how DTR decides
};

/// Why a run ended before its time, and what to do.
struct LiveFailure {
    QString what, hint;
};

class LiveRun : public QObject {
    Q_OBJECT
public:
    enum class State { Idle, Starting, Training, Stopping };

    explicit LiveRun(QObject* parent = nullptr);
    ~LiveRun() override;  // takes the plan out, as stop() does

    /// Brings the plan to a running process. One run at a time.
    void apply(const PlannedStep& planned, qint64 pid, const QString& command);
    /// Starts a program under the plan. It goes on whatever happens to us.
    void launch(const PlannedStep& planned, const QStringList& command);
    /// Brings these to a running process; nothing need be recorded.
    void apply(const LiveTerms& terms, qint64 pid, const QString& command);
    /// Starts a program with them.
    void launch(const LiveTerms& terms, const QStringList& command);
    /// Takes the plan or the budget out; the program goes on without it.
    void stop();

    State state() const { return state_; }
    bool busy() const { return state_ != State::Idle; }
    const PlannedStep& planned() const { return planned_; }  // of the last run; none without a plan
    const std::optional<LiveTerms>& terms() const { return terms_; }  // of the last; none: a plan's
    std::optional<core::Bytes> budget() const { return terms_ ? terms_->budget : std::nullopt; }
    /// The last run came so far that the program trained.
    bool began() const { return began_; }
    const LiveProgress& progress() const { return progress_; }
    const QString& target() const { return target_; }    // what trains, in few words
    const QString& status() const { return status_; }    // the tool's last line
    const QStringList& notes() const { return notes_; }  // what the tool had to say, a line each
    const std::optional<LiveFailure>& failure() const { return failure_; }  // of the last run
    double seconds() const;                                                 // since the start
    qint64 processId() const { return tool_ ? tool_->processId() : 0; }

signals:
    void changed();
    void stepped();
    /// The run is over and the session keeps it. `notes`: what the tool had to say, a line each.
    void finished(const QStringList& notes);
    /// The plan was refused, or the tool or the program ended with an error; progress() tells what
    /// came before.
    void failed(const QString& what, const QString& hint);

private:
    void startPlanned(const PlannedStep& planned, const QString& target, const QStringList& words,
                      const QStringList& behind);
    void startFree(const LiveTerms& terms, const QString& target, const QStringList& words,
                   const QStringList& behind);
    void prepare(const QString& target);
    void start(const QStringList& arguments);
    void read();
    void readSaid();
    void toolEnded(QProcess::ExitStatus how);
    /// The run is over; the outcome is there before anybody hears of the end.
    void end(const std::optional<LiveFailure>& failure = std::nullopt);
    std::optional<LiveFailure> outcome() const;
    bool toolHasMoreToSay() const;
    void trains();
    void letToolGo();
    void setState(State state);

    std::unique_ptr<QProcess> tool_;
    std::unique_ptr<QTemporaryDir> folder_;  // of the plan, and of what the tool writes
    GrowingFile told_, said_;                // progress; the tool's and the program's stderr
    QTimer reading_;
    QElapsedTimer since_;
    State state_ = State::Idle;
    bool launched_ = false, stopped_ = false, began_ = false;
    PlannedStep planned_;
    std::optional<LiveTerms> terms_;
    std::optional<LiveFailure> failure_;
    LiveProgress progress_;
    QString target_, status_, errors_, lastWords_;
    QStringList notes_;
};

}  // namespace hw::viewer
