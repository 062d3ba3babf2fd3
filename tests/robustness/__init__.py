"""Bad input of every kind, in every state, over in-process streams: nothing dies, hangs or is left over."""
