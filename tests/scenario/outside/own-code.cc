// Code in the style of its own project, which must compile as it would without Praefectus.
#if defined(_GLIBCXX_ASSERTIONS) || defined(PRAEFECTUS_RELEASE)
#error "definitions of Praefectus reach the host's own code"
#endif

// A cast that our own warnings refuse.
int roundedDown(double value) { return (int)value; }
