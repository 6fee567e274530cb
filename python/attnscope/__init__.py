"""What a video diffusion transformer looks at, from Python.

attnscope.capture records Q and K while a model runs. Importing this package imports nothing else:
each part of it needs packages of its own.
"""
