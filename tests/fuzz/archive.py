"""A target's corpus, corpus/NAME.tar: one file, which has the same bytes for the same inputs.

    archive.py list NAME             names and sizes
    archive.py unpack NAME FOLDER    each input becomes a file
    archive.py add NAME FILE...      each file becomes an input of its name
    archive.py remove NAME INPUT...
"""
import io
import os
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))


def path(target):
    return os.path.join(HERE, 'corpus', target + '.tar')


def read(target):
    """Inputs by name; none if the target has no archive yet."""
    if not os.path.exists(path(target)):
        return {}
    with tarfile.open(path(target)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def write(target, inputs):
    """Sorted, without times and owners; ustar, which replay_main.cc reads."""
    with tarfile.open(path(target) + '.new', 'w', format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(inputs):
            member = tarfile.TarInfo(name)
            member.size = len(inputs[name])
            archive.addfile(member, io.BytesIO(inputs[name]))
    os.replace(path(target) + '.new', path(target))


def unpack(target, folder):
    os.makedirs(folder, exist_ok=True)
    for name, content in read(target).items():
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(content)


def main(words):
    if len(words) < 2 or words[0] not in ('list', 'unpack', 'add', 'remove') or (words[0] != 'list') != (len(words) > 2):
        sys.exit(__doc__)
    action, target, *rest = words
    inputs = read(target)
    if action == 'list':
        for name, content in inputs.items():
            print('%6d %s' % (len(content), name))
    elif action == 'unpack':
        unpack(target, rest[0])
    elif action == 'add':
        for name in rest:
            with open(name, 'rb') as file:
                inputs[os.path.basename(name)] = file.read()
        write(target, inputs)
    else:
        missing = [name for name in rest if name not in inputs]
        if missing:
            sys.exit('archive.py: %s has no input %s; `list` names them' % (target, missing[0]))
        write(target, {name: content for name, content in inputs.items() if name not in rest})


if __name__ == '__main__':
    main(sys.argv[1:])
