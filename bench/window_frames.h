// SPDX-License-Identifier: GPL-3.0-or-later
// How long the window takes from an action to the end of the paint that it causes.
#pragma once

#include <QCoreApplication>
#include <QElapsedTimer>
#include <QEvent>
#include <QWidget>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

namespace hw::bench {

inline double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// Counts what is painted, so that a frame ends when it is on the screen.
class Painted : public QObject {
public:
    explicit Painted(QWidget& watched) { watched.installEventFilter(this); }
    int count = 0;

protected:
    bool eventFilter(QObject* watched, QEvent* event) override {
        if (event->type() == QEvent::Paint) ++count;
        return QObject::eventFilter(watched, event);
    }
};

inline double processorMs() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Milliseconds by the clock and of processor time.
struct Frames {
    std::vector<double> clock, processor;
};

/// From an action to the end of the paint that it causes.
template <class Action>
void frame(Frames& frames, Painted& painted, Action action) {
    QElapsedTimer timer;
    const int before = painted.count;
    const double processor = processorMs();
    timer.start();
    action();
    while (painted.count == before && timer.elapsed() < 1000) QCoreApplication::processEvents();
    frames.clock.push_back(static_cast<double>(timer.nsecsElapsed()) / 1e6);
    frames.processor.push_back(processorMs() - processor);
}

inline void printFrames(const char* what, const std::vector<double>& times) {
    std::printf("%-28s %8.2f %8.2f %8.2f\n", what, percentile(times, 0.5), percentile(times, 0.99),
                percentile(times, 1));
}

}  // namespace hw::bench
