// An NVRTC that compiles for the CPU with the C++ compiler of this machine. In place of a cubin it returns a shared
// object with two symbols for each kernel: the size of its argument, and a function that launches it.
//
// Its options are -DINCLUDE, the folder of cpu/program.h and cpu/run.o, and -DCOMPILER, the compiler with the options
// used to compile these.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

struct Program {
	std::string name, text, log, image;
	std::vector<std::pair<std::string, std::string>> headers; // by name
};

enum { SUCCESS = 0, COMPILATION = 6 };

std::string read(const std::string &file) {
	std::ifstream in(file, std::ios::binary);
	return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

bool write(const std::string &file, const std::string &text) {
	return bool(std::ofstream(file, std::ios::binary) << text);
}

std::string quoted(const std::string &s) { // for the shell
	std::string q = "'";
	for (char c : s)
		if (c == '\'') q += "'\\''";
		else q += c;
	return q + "'";
}

bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

std::string trimmed(const std::string &s) {
	const size_t from = s.find_first_not_of(" \t\n"), to = s.find_last_not_of(" \t\n");
	return from == std::string::npos ? "" : s.substr(from, to - from + 1);
}

// launchers returns the symbols for all kernels of a text without preprocessor directives:
// __global__ ... name(const __grid_constant__ Type argument).
std::string launchers(const std::string &text) {
	static const std::string mark = "__grid_constant__";
	std::string out = "\n";
	for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
		const size_t open = text.rfind('(', at), close = text.find(')', at);
		size_t end = open;
		while (end > 0 && !in_name(text[end - 1])) end--;
		size_t begin = end;
		while (begin > 0 && in_name(text[begin - 1])) begin--;
		std::string type = trimmed(text.substr(at + mark.size(), close - at - mark.size()));
		while (!type.empty() && in_name(type.back())) type.pop_back(); // the argument's name
		type = trimmed(type);
		const std::string name = text.substr(begin, end - begin);
		out += "extern \"C\" { extern const unsigned size_" + name + "; const unsigned size_" + name + " = sizeof(" +
		       type + ");\n";
		out += "static void call_" + name + "(const void *a) { " + name + "(*(const " + type + " *)a); }\n";
		out += "int run_" + name + "(const unsigned *grid, const unsigned *block, unsigned shared, const void *a) {\n";
		out += "\treturn cpu::run(call_" + name + ", a, grid, block, shared);\n} }\n";
	}
	return out;
}

// run runs a command, and returns whether it succeeded. Its output is added to the log.
bool run(const std::string &command, std::string &log) {
	FILE *p = popen((command + " 2>&1").c_str(), "r");
	if (!p) return false;
	char line[4096];
	while (fgets(line, sizeof line, p)) log += line;
	return pclose(p) == 0;
}

bool compile(Program &p, const std::string &dir, const std::vector<std::string> &options) {
	for (const auto &h : p.headers)
		if (!write(dir + "/" + h.first, h.second)) return false;
	const std::string source = dir + "/" + p.name, unit = dir + "/unit.cc", image = dir + "/image.so";
	const std::string include = " -I" + quoted(INCLUDE);
	// The macros of cpu/program.h are not expanded, because it is compiled once for all programs.
	std::string flags = include + " -I" + quoted(dir) + " -DCPU_RUN";
	for (const std::string &o : options) {
		if (o.rfind("--define-macro=", 0) == 0) flags += " -D" + quoted(o.substr(15));
		if (o.rfind("--pre-include=", 0) == 0) flags += " -include " + quoted(o.substr(14));
	}
	if (!write(source, p.text) || !run(COMPILER + flags + " -E -xc++ -o " + quoted(unit) + " " + quoted(source), p.log))
		return false;
	const std::string text = read(unit);
	if (!write(unit, text + launchers(text))) return false;
	if (!run(COMPILER + include + " -include cpu/program.h -shared -nodefaultlibs -o " + quoted(image) + " " +
	             quoted(unit) + " " + quoted(INCLUDE "/cpu/run.o") + " -lpthread -lm -lc -lgcc",
	         p.log))
		return false;
	p.image = read(image);
	return true;
}

} // namespace

extern "C" {

const char *nvrtcGetErrorString(int code) { return code == SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION"; }

int nvrtcVersion(int *major, int *minor) { return *major = 99, *minor = 0, SUCCESS; } // not a real version

int nvrtcGetNumSupportedArchs(int *count) { return *count = 1, SUCCESS; }

int nvrtcGetSupportedArchs(int *archs) { return *archs = 90, SUCCESS; }

int nvrtcCreateProgram(Program **p, const char *text, const char *name, int count, const char *const *texts,
                       const char *const *names) {
	*p = new Program;
	(*p)->text = text, (*p)->name = name;
	for (int i = 0; i < count; i++) (*p)->headers.emplace_back(names[i], texts[i]);
	return SUCCESS;
}

int nvrtcDestroyProgram(Program **p) { return delete *p, SUCCESS; }

int nvrtcCompileProgram(Program *p, int count, const char *const *options) {
	const char *tmp = getenv("TMPDIR");
	std::string dir = std::string(tmp ? tmp : "/tmp") + "/halox-cpu-XXXXXX";
	if (!mkdtemp(&dir[0])) return COMPILATION;
	const bool done = compile(*p, dir, std::vector<std::string>(options, options + count));
	std::string ignored;
	run("rm -rf " + quoted(dir), ignored);
	return done ? SUCCESS : COMPILATION;
}

int nvrtcGetProgramLogSize(Program *p, size_t *size) { return *size = p->log.size() + 1, SUCCESS; }
int nvrtcGetProgramLog(Program *p, char *log) { return memcpy(log, p->log.c_str(), p->log.size() + 1), SUCCESS; }
int nvrtcGetCUBINSize(Program *p, size_t *size) { return *size = p->image.size(), SUCCESS; }
int nvrtcGetCUBIN(Program *p, char *image) { return memcpy(image, p->image.data(), p->image.size()), SUCCESS; }
int nvrtcGetPTXSize(Program *, size_t *size) { return *size = 0, SUCCESS; }
int nvrtcGetPTX(Program *, char *) { return SUCCESS; }
}
