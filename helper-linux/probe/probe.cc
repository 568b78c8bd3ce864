// The probe: a small GTK 3 window that keeps its own record of every effect on it. The doctor, the
// demo and the tests act on it and then read the record, which no code of ours but this program
// writes.
//
//   praefectus-probe [--record FILE] [--mode MODE] [--title TITLE] [--label LABEL] [--no-focus]
//
// One line per effect, on disk when it is readable:
//   ready                     the window is on screen
//   text <bytes> <hex>        the entry holds this now
//   record <n> <hex>          the button was pressed the n-th time; the entry's text
//   twin <1|2>                one of the two equal buttons was pressed (mode equal)
//   secret <bytes>            the password entry changed and is that long now
//   check on|off
//   slider <value>
//   changed                   SIGUSR1 has done what the mode says
//
// What SIGUSR1 does is chosen by the mode, and only it: nothing happens by time.
#include <gtk/gtk.h>

#include <glib-unix.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace {

enum class Mode {
  PLAIN,
  EQUAL,    // Two buttons named alike.
  NOOP,     // The button does nothing.
  REJECT,   // The entry takes a new text back.
  CRASH,    // The button's press is recorded, and then the process dies.
  OPENS,    // The button's press opens a dialog besides.
  FREEZE,   // The button's press stops the whole process before it is recorded; SIGCONT resumes it.
  RENAME,   // SIGUSR1 gives the button another name.
  REPLACE,  // SIGUSR1 puts an identical button in the button's place.
  DISABLE,  // SIGUSR1 disables the button.
  HIDE,     // SIGUSR1 hides the button.
  REMOVE,   // SIGUSR1 removes the button.
  MODAL,    // SIGUSR1 opens a modal dialog.
  DOUBLE,   // SIGUSR1 opens a second window of the same title, size and place.
  MINIMIZE,  // SIGUSR1 minimizes the window.
  MOVE,      // SIGUSR1 moves the window by seven pixels.
  SECRET,    // The password entry holds a text from the start.
};

struct ModeName {
  const char* name;
  Mode mode;
};
constexpr ModeName MODES[] = {
    {"crash", Mode::CRASH},   {"freeze", Mode::FREEZE},     {"plain", Mode::PLAIN},
    {"equal", Mode::EQUAL},   {"noop", Mode::NOOP},         {"reject", Mode::REJECT},
    {"rename", Mode::RENAME}, {"replace", Mode::REPLACE},   {"disable", Mode::DISABLE},
    {"hide", Mode::HIDE},     {"remove", Mode::REMOVE},     {"modal", Mode::MODAL},
    {"double", Mode::DOUBLE}, {"minimize", Mode::MINIMIZE}, {"move", Mode::MOVE},
    {"secret", Mode::SECRET}, {"opens", Mode::OPENS},
};

constexpr const char* KEPT_SECRET = "correct horse battery";

struct Probe {
  int record = -1;
  Mode mode = Mode::PLAIN;
  unsigned presses = 0;
  bool rejecting = false;
  GtkWidget* window = nullptr;
  GtkWidget* entry = nullptr;
  GtkWidget* buttons = nullptr;  // The box that holds the button.
  GtkWidget* button = nullptr;
};

void write(Probe& probe, const std::string& line) {
  if (probe.record < 0) return;
  std::string text = line + "\n";
  if (::write(probe.record, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(probe.record) != 0) {
    perror("praefectus-probe: record");
    exit(1);
  }
}

std::string hexOf(const char* text) {
  static const char DIGITS[] = "0123456789abcdef";
  std::string out;
  for (; *text != 0; ++text) {
    auto byte = static_cast<unsigned char>(*text);
    out += DIGITS[byte >> 4];
    out += DIGITS[byte & 15];
  }
  return out;
}

const char* entryText(Probe& probe) { return gtk_entry_get_text(GTK_ENTRY(probe.entry)); }

gboolean takeBack(gpointer data) {
  auto& probe = *static_cast<Probe*>(data);
  gtk_entry_set_text(GTK_ENTRY(probe.entry), "");
  probe.rejecting = false;
  return G_SOURCE_REMOVE;
}

void onText(GtkEditable*, gpointer data) {
  auto& probe = *static_cast<Probe*>(data);
  const char* text = entryText(probe);
  write(probe, "text " + std::to_string(strlen(text)) + " " + hexOf(text));
  if (probe.mode == Mode::REJECT && !probe.rejecting && *text != 0) {
    probe.rejecting = true;
    g_idle_add(takeBack, &probe);
  }
}

// Its length only, as the record is a file.
void onSecret(GtkEditable* secret, gpointer data) {
  size_t bytes = strlen(gtk_entry_get_text(GTK_ENTRY(secret)));
  write(*static_cast<Probe*>(data), "secret " + std::to_string(bytes));
}

void openModal(Probe& probe) {
  GtkWidget* dialog = gtk_message_dialog_new(GTK_WINDOW(probe.window), GTK_DIALOG_MODAL,
                                             GTK_MESSAGE_QUESTION, GTK_BUTTONS_OK, "Really?");
  gtk_window_set_title(GTK_WINDOW(dialog), "Praefectus Probe Question");
  gtk_window_set_focus_on_map(GTK_WINDOW(dialog), FALSE);
  g_signal_connect(dialog, "response", G_CALLBACK(gtk_widget_destroy), nullptr);
  gtk_widget_show_all(dialog);
}

void onRecord(GtkButton*, gpointer data) {
  auto& probe = *static_cast<Probe*>(data);
  if (probe.mode == Mode::NOOP) return;
  if (probe.mode == Mode::FREEZE) raise(SIGSTOP);
  ++probe.presses;
  write(probe, "record " + std::to_string(probe.presses) + " " + hexOf(entryText(probe)));
  if (probe.mode == Mode::CRASH) raise(SIGKILL);
  if (probe.mode == Mode::OPENS) openModal(probe);
}

void onTwin(GtkButton* button, gpointer data) {
  auto number = GPOINTER_TO_INT(g_object_get_data(G_OBJECT(button), "number"));
  write(*static_cast<Probe*>(data), "twin " + std::to_string(number));
}

void onCheck(GtkToggleButton* check, gpointer data) {
  bool on = gtk_toggle_button_get_active(check) != FALSE;
  write(*static_cast<Probe*>(data), on ? "check on" : "check off");
}

void onSlider(GtkRange* range, gpointer data) {
  char text[32];
  snprintf(text, sizeof(text), "slider %g", gtk_range_get_value(range));
  write(*static_cast<Probe*>(data), text);
}

GtkWidget* newButton(Probe& probe) {
  GtkWidget* button = gtk_button_new_with_label("Record");
  g_signal_connect(button, "clicked", G_CALLBACK(onRecord), &probe);
  gtk_box_pack_start(GTK_BOX(probe.buttons), button, TRUE, TRUE, 0);
  gtk_box_reorder_child(GTK_BOX(probe.buttons), button, 0);
  gtk_widget_show(button);
  return button;
}

void openDouble(Probe& probe) {
  auto window = GTK_WINDOW(gtk_window_new(GTK_WINDOW_TOPLEVEL));
  int x = 0, y = 0, width = 0, height = 0;
  gtk_window_get_position(GTK_WINDOW(probe.window), &x, &y);
  gtk_window_get_size(GTK_WINDOW(probe.window), &width, &height);
  gtk_window_set_title(window, gtk_window_get_title(GTK_WINDOW(probe.window)));
  gtk_window_set_default_size(window, width, height);
  gtk_window_move(window, x, y);
  gtk_window_set_focus_on_map(window, FALSE);
  gtk_container_add(GTK_CONTAINER(window), gtk_button_new_with_label("Record"));
  gtk_widget_show_all(GTK_WIDGET(window));
}

void movedBy(Probe& probe, int pixels) {
  int x = 0, y = 0;
  gtk_window_get_position(GTK_WINDOW(probe.window), &x, &y);
  gtk_window_move(GTK_WINDOW(probe.window), x + pixels, y);
}

gboolean onSignal(gpointer data) {
  auto& probe = *static_cast<Probe*>(data);
  switch (probe.mode) {
    case Mode::PLAIN:
    case Mode::EQUAL:
    case Mode::NOOP:
    case Mode::REJECT:
    case Mode::CRASH:
    case Mode::FREEZE:
    case Mode::OPENS:
    case Mode::SECRET:
      break;
    case Mode::RENAME:
      gtk_button_set_label(GTK_BUTTON(probe.button), "Erase");
      break;
    case Mode::REPLACE:
      gtk_widget_destroy(probe.button);
      probe.button = newButton(probe);
      break;
    case Mode::DISABLE:
      gtk_widget_set_sensitive(probe.button, FALSE);
      break;
    case Mode::HIDE:
      gtk_widget_hide(probe.button);
      break;
    case Mode::REMOVE:
      gtk_widget_destroy(probe.button);
      probe.button = nullptr;
      break;
    case Mode::DOUBLE:
      openDouble(probe);
      break;
    case Mode::MODAL:
      openModal(probe);
      break;
    case Mode::MINIMIZE:
      gtk_window_iconify(GTK_WINDOW(probe.window));
      break;
    case Mode::MOVE:
      movedBy(probe, 7);
      break;
  }
  write(probe, "changed");
  return G_SOURCE_CONTINUE;
}

gboolean onMapped(GtkWidget*, GdkEvent*, gpointer data) {
  write(*static_cast<Probe*>(data), "ready");
  return FALSE;
}

void setName(GtkWidget* widget, const char* name) {
  atk_object_set_name(gtk_widget_get_accessible(widget), name);
}

GtkWidget* addEntry(GtkWidget* box, const char* label, const char* name) {
  GtkWidget* row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget* entry = gtk_entry_new();
  gtk_box_pack_start(GTK_BOX(row), gtk_label_new(label), FALSE, FALSE, 0);
  gtk_box_pack_start(GTK_BOX(row), entry, TRUE, TRUE, 0);
  gtk_box_pack_start(GTK_BOX(box), row, FALSE, FALSE, 0);
  setName(entry, name);
  return entry;
}

void addTwins(Probe& probe) {
  for (int number = 1; number <= 2; ++number) {
    GtkWidget* twin = gtk_button_new_with_label("Twin");
    g_object_set_data(G_OBJECT(twin), "number", GINT_TO_POINTER(number));
    g_signal_connect(twin, "clicked", G_CALLBACK(onTwin), &probe);
    gtk_box_pack_start(GTK_BOX(probe.buttons), twin, TRUE, TRUE, 0);
  }
}

void build(Probe& probe, const char* title, const char* label, bool acceptFocus) {
  probe.window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
  auto window = GTK_WINDOW(probe.window);
  gtk_window_set_title(window, title);
  gtk_window_set_default_size(window, 420, 320);
  gtk_window_set_focus_on_map(window, FALSE);
  gtk_window_set_accept_focus(window, acceptFocus ? TRUE : FALSE);
  g_signal_connect(probe.window, "destroy", G_CALLBACK(gtk_main_quit), nullptr);
  g_signal_connect(probe.window, "map-event", G_CALLBACK(onMapped), &probe);

  GtkWidget* box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
  gtk_container_set_border_width(GTK_CONTAINER(box), 12);
  gtk_container_add(GTK_CONTAINER(probe.window), box);

  probe.entry = addEntry(box, "Text", "Text");
  g_signal_connect(probe.entry, "changed", G_CALLBACK(onText), &probe);
  GtkWidget* secret = addEntry(box, "Password", "Password");
  gtk_entry_set_visibility(GTK_ENTRY(secret), FALSE);
  gtk_entry_set_input_purpose(GTK_ENTRY(secret), GTK_INPUT_PURPOSE_PASSWORD);
  g_signal_connect(secret, "changed", G_CALLBACK(onSecret), &probe);
  if (probe.mode == Mode::SECRET) gtk_entry_set_text(GTK_ENTRY(secret), KEPT_SECRET);

  probe.buttons = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_box_pack_start(GTK_BOX(box), probe.buttons, FALSE, FALSE, 0);
  probe.button = newButton(probe);
  if (probe.mode == Mode::EQUAL) addTwins(probe);

  GtkWidget* disabled = gtk_button_new_with_label("Disabled");
  gtk_widget_set_sensitive(disabled, FALSE);
  g_signal_connect(disabled, "clicked", G_CALLBACK(onRecord), &probe);
  gtk_box_pack_start(GTK_BOX(box), disabled, FALSE, FALSE, 0);

  GtkWidget* hidden = gtk_button_new_with_label("Hidden");
  g_signal_connect(hidden, "clicked", G_CALLBACK(onRecord), &probe);
  gtk_box_pack_start(GTK_BOX(box), hidden, FALSE, FALSE, 0);
  gtk_widget_set_no_show_all(hidden, TRUE);

  GtkWidget* check = gtk_check_button_new_with_label(label);
  g_signal_connect(check, "toggled", G_CALLBACK(onCheck), &probe);
  gtk_box_pack_start(GTK_BOX(box), check, FALSE, FALSE, 0);

  GtkWidget* slider = gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 100, 1);
  setName(slider, "Slider");
  g_signal_connect(slider, "value-changed", G_CALLBACK(onSlider), &probe);
  gtk_box_pack_start(GTK_BOX(box), slider, FALSE, FALSE, 0);
}

bool parseMode(const char* name, Mode& mode) {
  for (auto& each : MODES) {
    if (strcmp(each.name, name) != 0) continue;
    mode = each.mode;
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  gchar* record = nullptr;
  gchar* modeName = nullptr;
  gchar* title = nullptr;
  gchar* label = nullptr;
  gboolean noFocus = FALSE;
  GOptionEntry options[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "Append one line per effect", "FILE"},
      {"mode", 0, 0, G_OPTION_ARG_STRING, &modeName, "How to misbehave", "MODE"},
      {"title", 0, 0, G_OPTION_ARG_STRING, &title, "Window title", "TITLE"},
      {"label", 0, 0, G_OPTION_ARG_STRING, &label, "The check box's label", "LABEL"},
      {"no-focus", 0, 0, G_OPTION_ARG_NONE, &noFocus, "Never take the focus", nullptr},
      {nullptr, 0, 0, G_OPTION_ARG_NONE, nullptr, nullptr, nullptr}};
  GError* error = nullptr;
  if (!gtk_init_with_args(&argc, &argv, nullptr, options, nullptr, &error)) {
    fprintf(stderr, "praefectus-probe: %s\n", error != nullptr ? error->message : "no display");
    return 2;
  }
  Probe probe;
  if (modeName != nullptr && !parseMode(modeName, probe.mode)) {
    fprintf(stderr, "praefectus-probe: no such mode\n");
    return 2;
  }
  if (record != nullptr) {
    probe.record = open(record, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (probe.record < 0) {
      perror("praefectus-probe: record");
      return 1;
    }
  }
  build(probe, title != nullptr ? title : "Praefectus Probe", label != nullptr ? label : "Check",
        noFocus == FALSE);
  g_unix_signal_add(SIGUSR1, onSignal, &probe);
  gtk_widget_show_all(probe.window);
  gtk_main();
  return 0;
}
