"""NVRTC, as far as the tests need it."""
import ctypes


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))

    def _text(self, program, kind):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{kind}")(program, text)
        return text.value.decode()

    def compile(self, text, options, names, headers):
        """The PTX, or the log as an error."""
        program = ctypes.c_void_p()
        count = len(headers)
        texts = (ctypes.c_char_p * count)(*(header.encode() for header in headers.values()))
        files = (ctypes.c_char_p * count)(*(name.encode() for name in headers))
        self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"program.cu",
                                        count, texts, files)
        for name in names:
            self.library.nvrtcAddNameExpression(program, name.encode())
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self.library.nvrtcCompileProgram(program, len(options), flags)
        try:
            if failed:
                raise RuntimeError(self._text(program, "ProgramLog"))
            return self._text(program, "PTX")
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))
