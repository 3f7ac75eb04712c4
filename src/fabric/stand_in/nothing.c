// A library without code: what matters is which libraries it leads to, and by what name it is
// found.
typedef int diapause_nothing;
