// SPDX-License-Identifier: GPL-3.0-or-later
// What a person does, by keys, clicks and the names of things: start, attach to a live training,
// watch, stop, find the largest layer, set a budget, compare, export, run, report.
#include <gtest/gtest.h>

#include <QAbstractItemView>
#include <QDialog>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QRegularExpression>
#include <QSlider>
#include <QToolButton>

#include "tests/gui/training.h"
#include "viewer/panels/main_window.h"

namespace hw::viewer {
namespace {

constexpr int kLongPatience = 300'000;  // milliseconds; only a hang lasts so long

class Person {
public:
    explicit Person(QWidget& window) : window_(window) {}

    template <class T>
    T* named(const char* name) const {
        return window_.findChild<T*>(QLatin1String(name));
    }
    QString label(const char* name) const {
        for (const QLabel* found : window_.findChildren<QLabel*>(QLatin1String(name)))
            if (found->isVisible()) return found->text();  // several views have one of that name
        return {};
    }
    template <class Condition>
    bool sees(Condition condition) const {
        return QTest::qWaitFor(condition, kLongPatience);
    }
    /// A shortcut of the window.
    void presses(int key, Qt::KeyboardModifiers with = {}) const {
        QTest::keyClick(&window_, static_cast<Qt::Key>(key), with);
    }
    bool clicksTool(const char* text) const {
        for (QToolButton* button : window_.findChildren<QToolButton*>())
            if (button->text() == QLatin1String(text) && button->isVisible()) {
                QTest::mouseClick(button, Qt::LeftButton);
                return true;
            }
        return false;
    }
    /// As a window manager does when a dialog has gone; the offscreen platform has none.
    bool returnsToTheWindow() const {
        window_.activateWindow();
        return QTest::qWaitForWindowActive(&window_);
    }
    void types(QLineEdit* field, const QString& text) const {
        field->selectAll();
        QTest::keyClicks(field, text);
    }
    void clicks(QPushButton* button) const { QTest::mouseClick(button, Qt::LeftButton); }
    void clicks(QAbstractItemView* view, int row) const {
        const QRect where = view->visualRect(view->model()->index(row, 0));
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, where.center());
    }
    QAbstractItemView* table(const char* dock) const {
        const auto* found = named<QDockWidget>(dock);
        return found ? found->findChild<QAbstractItemView*>() : nullptr;
    }
    /// The row whose cell of that column reads so; -1: none.
    int row(QAbstractItemView* view, int column, const QRegularExpression& text) const {
        for (int i = 0; i < view->model()->rowCount(); ++i)
            if (text.match(view->model()->index(i, column).data().toString()).hasMatch()) return i;
        return -1;
    }
    std::string read(QAbstractItemView* view) const {
        QString all;
        for (int i = 0; i < view->model()->rowCount(); ++i, all += QLatin1Char('\n'))
            for (int j = 0; j < view->model()->columnCount(); ++j)
                all += view->model()->index(i, j).data().toString() + QStringLiteral(" | ");
        return all.toStdString();
    }
    int column(QAbstractItemView* view, const QString& header) const {
        for (int i = 0; i < view->model()->columnCount(); ++i)
            if (view->model()->headerData(i, Qt::Horizontal).toString() == header) return i;
        return -1;
    }
    /// Answers the dialog that asks where to save, which begins in the session's folder; what was
    /// seen instead, empty: it is saved.
    std::string saves(const QString& folder, const QString& name) const {
        const auto dialog = [&] { return named<QFileDialog>("saveDialog"); };
        if (!sees([&] { return dialog() != nullptr && dialog()->isVisible(); })) {
            const auto* box = named<QMessageBox>("");
            return "no dialog; " + (box ? box->text().toStdString() : std::string("no message"));
        }
        const QString path = folder + QLatin1Char('/') + name;
        types(dialog()->findChild<QLineEdit*>(QStringLiteral("fileNameEdit")), name);
        if (!sees([&] { return dialog()->selectedFiles() == QStringList{path}; }))
            return "it would save " + dialog()->selectedFiles().join(' ').toStdString();
        clicks(dialog()->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save));
        return sees([&] { return QFile::exists(path) && !dialog(); }) ? "" : "nothing was written";
    }

private:
    QWidget& window_;
};

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

TEST(UserPath, FromALiveTrainingToAReport) {
    HW_NEED_TRAINING();
    samples::Training training;
    ASSERT_TRUE(training.start());
    MainWindow window;
    window.resize(1680, 1000);
    window.show();
    ASSERT_TRUE(QTest::qWaitForWindowExposed(&window));
    const Person person(window);

    // Attach.
    person.presses(Qt::Key_R, Qt::ControlModifier);
    auto* dialog = person.named<QDialog>("attachDialog");
    ASSERT_TRUE(dialog && dialog->isVisible());
    auto* processes = dialog->findChild<QAbstractItemView*>(QStringLiteral("processes"));
    const QRegularExpression pid(QStringLiteral("^%1$").arg(training.pid()));
    ASSERT_TRUE(person.sees([&] { return person.row(processes, 0, pid) >= 0; }));
    person.clicks(processes, person.row(processes, 0, pid));
    person.types(person.named<QLineEdit>("folder"), training.folder());
    person.clicks(person.named<QPushButton>("attach"));

    // Watch it stream, then stop.
    static const QRegularExpression manySteps(QStringLiteral("· ([4-9]|\\d\\d+) steps"));
    ASSERT_TRUE(person.sees([&] {
        return manySteps.match(person.label("recordingText")).hasMatch();
    })) << person.label("trainingProblem").toStdString();
    EXPECT_FALSE(dialog->isVisible());
    EXPECT_FALSE(person.label("recordingMark").isEmpty());
    ASSERT_TRUE(person.sees([&] { return person.named<QDockWidget>("timeline")->isVisible(); }));
    EXPECT_TRUE(person.named<QDockWidget>("steps")->isVisible());
    person.clicks(person.named<QPushButton>("recordingButton"));
    ASSERT_TRUE(person.sees([&] { return person.label("recordingMark").isEmpty(); }));
    EXPECT_TRUE(training.running());

    ASSERT_TRUE(person.returnsToTheWindow());

    // The layer that holds most at the peak stands first.
    QAbstractItemView* layers = person.table("layers");
    ASSERT_TRUE(person.sees([&] { return layers->model()->rowCount() > 0; }));
    person.clicks(layers, 0);
    EXPECT_TRUE(layers->selectionModel()->isRowSelected(0, {}));

    // A budget, and the planners compared.
    QAbstractItemView* plans = person.table("compare");
    const int peak = person.column(plans, QStringLiteral("peak"));
    const int measured = person.column(plans, QStringLiteral("measured peak"));
    const int budget = person.column(plans, QStringLiteral("budget"));
    const int extra = person.column(plans, QStringLiteral("extra time"));
    const auto cell = [](QAbstractItemView* view, int row, int column) {
        return view->model()->index(row, column).data().toString();
    };
    const QString computing = QStringLiteral("computing…");
    ASSERT_GE(std::min({peak, budget, extra}), 0);
    ASSERT_GE(measured, 0);
    static const QRegularExpression size(QStringLiteral("\\d [GMk]?B$"));
    ASSERT_TRUE(person.sees([&] { return !cell(plans, 0, budget).isEmpty(); }));
    const QString before = cell(plans, 0, budget);
    auto* slider = window.findChild<QSlider*>();
    QTest::mouseClick(slider, Qt::LeftButton, {},
                      QPoint(slider->width() * 3 / 4, slider->height() / 2));
    ASSERT_TRUE(person.sees([&] { return cell(plans, 0, budget) != before; }));
    const auto answered = [&] {
        int rows = 0;
        for (int i = 0; i < plans->model()->rowCount(); ++i)
            rows += cell(plans, i, extra).isEmpty() || cell(plans, i, extra) == computing ? 0 : 1;
        return rows;
    };
    ASSERT_TRUE(person.sees([&] { return answered() >= 5; })) << person.read(plans);
    EXPECT_GE(person.row(plans, peak, size), 0) << person.read(plans);
    static const QRegularExpression ours(QStringLiteral("^highwater$"));
    ASSERT_TRUE(person.sees([&] {
        const int row = person.row(plans, 0, ours);
        return row >= 0 && size.match(cell(plans, row, peak)).hasMatch();
    }));
    person.clicks(plans, person.row(plans, 0, ours));

    // Keep the plan.
    const QString folder = training.folder() + QLatin1Char('/');
    ASSERT_TRUE(person.clicksTool("Export plan"));
    ASSERT_EQ(person.saves(training.folder(), QStringLiteral("mine.plan.json")), "");
    EXPECT_TRUE(contentOf(folder + QStringLiteral("mine.plan.json"))
                    .contains("\"planner\": \"highwater\""));

    ASSERT_TRUE(person.returnsToTheWindow());

    // Run it, where the executor is built, and see what was measured beside what was predicted.
    const QString executor = QFileInfo(toolProgram()).path() + QStringLiteral("/highwater-exec");
    const bool runs = QFile::exists(executor);
    if (runs) {
        ASSERT_TRUE(person.clicksTool("Run plan"));
        ASSERT_TRUE(person.sees([&] {
            return person.row(plans, measured, size) >= 0 &&
                   person.label("figure").contains(QStringLiteral("→"));  // its plan is drawn again
        }));
    }

    // The report tells all of it.
    ASSERT_TRUE(person.clicksTool("Report"));
    ASSERT_EQ(person.saves(training.folder(), QStringLiteral("story.html")), "");
    const QByteArray report = contentOf(folder + QStringLiteral("story.html"));
    EXPECT_TRUE(report.contains("The chosen plan: highwater")) << person.read(plans);
    EXPECT_TRUE(report.contains("train.py")) << "the recorded command";
    EXPECT_EQ(report.count("<svg"), 4) << "the timeline, the peak of both, and the addresses";
    EXPECT_FALSE(report.contains("<script"));
    EXPECT_FALSE(QRegularExpression(QStringLiteral("(src|href)=\"http"))
                     .match(QString::fromUtf8(report))
                     .hasMatch())
        << "nothing is loaded from elsewhere";
    EXPECT_EQ(report.contains("It was run"), runs);
}

}  // namespace
}  // namespace hw::viewer
