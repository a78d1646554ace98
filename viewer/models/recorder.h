// SPDX-License-Identifier: GPL-3.0-or-later
// Recording from the window: a `highwater attach` or `highwater record` of its own, so that neither
// the end of the window nor that of the recorder takes anything along but itself.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QStringList>

namespace hw::viewer {

class Recorder : public QObject {
    Q_OBJECT
public:
    enum class State { Idle, Starting, Recording, Stopping };

    explicit Recorder(QObject* parent = nullptr);
    ~Recorder() override;  // ends the recording; the training process goes on

    /// A free file name for a recording of this command in a folder.
    static QString sessionFor(const QString& command, const QString& folder);

    /// Records a running process into a new file. `steps` 0: until stop(). One recording at a time.
    void attach(qint64 pid, const QString& command, const QString& session, int steps);
    /// Starts a program and records it; after stop() the program goes on.
    void launch(const QStringList& command, const QString& session, int steps);
    void stop();

    State state() const { return state_; }
    bool busy() const { return state_ != State::Idle; }
    int steps() const { return steps_; }  // complete ones in the file
    const QString& session() const { return session_; }
    const QString& target() const { return target_; }  // what is recorded, in few words
    const QString& status() const { return status_; }  // the recorder's last line
    double seconds() const;                            // since the start
    qint64 processId() const { return process_.processId(); }

signals:
    void changed();
    void stepRecorded(const QString& session);
    /// The file is complete. `notes`: what the recorder had to say, a line each.
    void finished(const QString& session, const QStringList& notes);
    /// No step was recorded, or the recorder died; then steps() tells what is in the file.
    void failed(const QString& what, const QString& hint);

private:
    void start(const QStringList& arguments, const QString& session);
    void readLine(const QString& line);
    void ended(int exitCode, QProcess::ExitStatus how);
    void setState(State state);

    QProcess process_;
    QElapsedTimer since_;
    State state_ = State::Idle;
    bool launched_ = false;
    int steps_ = 0;
    QString session_, target_, status_, said_, rest_;  // said_: errors and hints
    QStringList notes_;
};

}  // namespace hw::viewer
