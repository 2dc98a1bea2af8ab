// In place of the system's: an assertion that fails is an exception, which interface.cpp turns into a message. The
// emulator asserts where it does not know an instruction, and would take the tests along.
#include <stdexcept>
#undef assert
#define EMULATOR_TEXT_(x) #x
#define EMULATOR_TEXT(x) EMULATOR_TEXT_(x)
#define assert(x) ((x) ? (void)0 : throw std::logic_error(__FILE__ ":" EMULATOR_TEXT(__LINE__) ": " #x))
