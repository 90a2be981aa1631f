"""Its members, machines, lanes, models and presets."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import Group, User

from lanes.models import Gpu, Host, HostReport, Lane, ModelFile, Preset, PresetRevision
from lanes.version import code_version
from slotserve.demo.cast import GROUPS, MACHINES, MODELS, PEOPLE, Machine, Model
from slotserve.demo.scale import Demo


@dataclass(frozen=True, slots=True)
class Company:
    """What was made. `presets`: those that each lane can run, by the lane's pk."""

    administrator: User
    members: list[User]
    lanes: list[Lane]
    presets: dict[int, list[Preset]]
    models: dict[int, Model]  # by the preset's pk


def make_company(demo: Demo, password: str) -> Company:
    """All of it; with a password people can log in."""
    administrator, members = _people(demo, password)
    lanes: list[Lane] = []
    presets: dict[int, list[Preset]] = {}
    models: dict[int, Model] = {}
    turn = 0
    while len(lanes) < demo.scale.lanes:
        for machine in MACHINES:
            made = _machine(demo, machine, turn)
            own = _presets(demo, machine, made, turn, administrator, models)
            for lane in _lanes(demo, machine, made, turn, demo.scale.lanes - len(lanes)):
                lane.default_preset = own[0]
                lane.save()
                lanes.append(lane)
                presets[lane.pk] = own
        turn += 1
    return Company(administrator, members, lanes, presets, models)


def _people(demo: Demo, password: str) -> tuple[User, list[User]]:
    groups = [Group.objects.get_or_create(name=name)[0] for name in GROUPS]
    administrator = _person("morgan", password, demo, is_staff=True, is_superuser=True)
    members = []
    for number in range(demo.scale.members):
        name = PEOPLE[number % len(PEOPLE)]
        turn = number // len(PEOPLE)
        member = _person(f"{name}{turn or ''}", password, demo)
        member.groups.add(groups[number % len(groups)])
        members.append(member)
    return administrator, members


def _person(name: str, password: str, demo: Demo, **fields: bool) -> User:
    person = User(username=name, email=f"{name}@demo.invalid", first_name=name.title(), **fields)
    person.set_password(password) if password else person.set_unusable_password()
    person.date_joined = demo.now - timedelta(days=demo.scale.days)
    person.save()
    return person


def _suffix(turn: int) -> str:
    return f"-{turn + 1}" if turn else ""


def _machine(demo: Demo, machine: Machine, turn: int) -> Host:
    host = Host.objects.create(
        key=machine.key + _suffix(turn), name=machine.name + _suffix(turn), seen_at=demo.now
    )
    HostReport.objects.create(
        host=host,
        at=demo.now,
        version=code_version(),
        machine=host.key,
        clock_skew=0.012,
        disk_free_bytes=812 * 10**9,
        disk_total_bytes=1900 * 10**9,
        driver="well",
        driver_words="580.95.05",
        servers_run_as="slotserve-models",
        is_user_shared=False,
    )
    return host


def _lanes(demo: Demo, machine: Machine, host: Host, turn: int, most: int) -> list[Lane]:
    made = []
    for slug, name, cards in machine.lanes[:most]:
        lane = Lane.objects.create(
            slug=slug + _suffix(turn),
            name=name + _suffix(turn),
            host=host,
            needs_approval=machine.key == "cumulus",
        )
        for number in range(cards):
            lane.gpus.add(
                Gpu.objects.create(
                    host=host,
                    uuid=f"GPU-{demo.dice.getrandbits(64):016x}-{lane.slug}-{number}",
                    name=machine.card,
                    memory_bytes=machine.card_bytes,
                )
            )
        made.append(lane)
    return made


def _presets(
    demo: Demo,
    machine: Machine,
    host: Host,
    turn: int,
    author: User,
    models: dict[int, Model],
) -> list[Preset]:
    own = []
    for model in (model for model in MODELS if model.host == machine.key):
        file = ModelFile.objects.create(
            host=host,
            path=f"/models/{model.slug}.gguf",
            name=model.name,
            size_bytes=model.size_bytes,
            architecture=model.slug.split("-")[0],
            parameters=model.parameters,
            quantisation=model.quantisation,
            context_length=model.context,
            has_chat_template=True,
        )
        preset = Preset.objects.create(slug=model.slug + _suffix(turn), name=model.name)
        _revisions(demo, preset, file, model, author)
        models[preset.pk] = model
        own.append(preset)
    return own


def _revisions(demo: Demo, preset: Preset, file: ModelFile, model: Model, author: User) -> None:
    """The first with half of the context, then the one of today."""
    first = ("-c", "4096") if model.engine == "llama.cpp" else ("--max-model-len", "4096")
    for number, arguments in enumerate((first, model.arguments), start=1):
        made = PresetRevision.objects.create(
            preset=preset,
            number=number,
            model_file=file,
            engine=model.engine,
            arguments=list(arguments),
            created_by=author,
        )
        made.created_at = demo.now - timedelta(days=demo.scale.days / number)
        made.save(update_fields=["created_at"])
        preset.current = made
    preset.save(update_fields=["current"])
