// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <functional>
#include <string>

class QWidget;

namespace hw::viewer {

/// The files that can be opened, as a file dialog takes it: sessions, and whatever can be imported.
QString openFilter();

/// Asks for the name of a file to write, without blocking; `take` gets it unless it was cancelled.
/// It begins in the folder of `beside`, under the suggested name; `suffix` is added to a name
/// without an ending.
void askToSave(QWidget* parent, const QString& title, const std::string& beside,
               const QString& suggestion, const QString& filter, const QString& suffix,
               const std::function<void(const QString&)>& take);

}  // namespace hw::viewer
