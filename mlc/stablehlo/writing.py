def text(f, args): raise NotImplementedError
