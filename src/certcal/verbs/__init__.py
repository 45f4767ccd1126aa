"""The verbs: one function and one frozen result for every question, and the settings that they take.

Each file holds a question whole: its settings, its result, and the function that answers it. They read files, call the
numerics and return a :class:`~certcal.result.Result`; they print nothing and know no command line.
"""
